// SPDX-License-Identifier: Apache-2.0
//! A range of an object whose length changes has the bytes and the length of one version, whichever version is
//! stored.

use sluice_tests::client::crowd::stampede;
use sluice_tests::client::{Client, Failure, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::http::body;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::net::SocketAddr;
use std::time::Duration;
use test_case::test_case;

const SHORT: usize = 900;
const LONG: usize = 2000;

/// Values of `Range` with the bytes that they select, by the object's size. `None` stands for a response with status
/// 416.
type Ranges = [(&'static str, fn(usize) -> Option<(usize, usize)>); 6];
const RANGES: Ranges = [
    ("bytes=0-99", |_| Some((0, 99))),
    ("bytes=-100", |size| Some((size - 100, size - 1))),
    ("bytes=500-", |size| Some((500, size - 1))),
    ("bytes=800-1499", |size| Some((800, size.min(1500) - 1))),
    ("bytes=-1500", |size| {
        Some((size.saturating_sub(1500), size - 1))
    }),
    ("bytes=1000-1999", |size| {
        (size > 1000).then_some((1000, 1999))
    }),
];

/// An object before and after it changes.
struct Versions {
    origin: Origin,
    sizes: [usize; 2],
    /// Holds the second response.
    gate: Gate,
}

impl Versions {
    /// Starts an origin whose first version is fresh for `max_age` seconds.
    async fn start(sizes: [usize; 2], max_age: u32) -> Self {
        let origin = Origin::start().ready().await;
        let gate = Gate::new();
        let old = Reply::ok(sizes[0]).max_age(max_age).etag("v1");
        let new = Reply::ok(sizes[1]).max_age(600).etag("v2").hold(&gate);
        origin.on_each("/a", [old, new]);
        Self {
            origin,
            sizes,
            gate,
        }
    }

    /// Sends `count` requests for ranges while the store validates the object for another request, and returns their
    /// outcomes. The origin answers with the second version.
    async fn ask_meanwhile(
        &self,
        address: SocketAddr,
        count: usize,
    ) -> Vec<Result<Response, Failure>> {
        let mut checks = Client::connect(address).await;
        let check = request("GET", "/a", &[("cache-control", "no-cache")]);
        checks.send(check).await.unwrap();
        self.gate.wait_reached(1).await;
        let mut clients = Vec::new();
        for n in 0..count {
            let mut client = Client::connect(address).await;
            let range = [("range", RANGES[n % RANGES.len()].0)];
            client.send(request("GET", "/a", &range)).await.unwrap();
            clients.push(client);
        }
        // No event shows that the requests have reached the store.
        tokio::time::sleep(Duration::from_millis(200)).await;
        self.gate.open();
        let mut outcomes = Vec::new();
        for mut client in clients {
            outcomes.push(client.response().await);
        }
        outcomes
    }

    /// Checks that the response to a range is of one version, and that its fields are true.
    fn assert_part(&self, range: usize, response: &Response) {
        let (range, part) = RANGES[range];
        let told = response.header("content-range");
        if response.status == 416 {
            let unsatisfied =
                |size: &usize| part(*size).is_none() && told == format!("bytes */{size}");
            assert!(self.sizes.iter().any(unsatisfied), "{range}: {response}");
            return;
        }
        assert_eq!(response.status, 206, "{range}: {response}");
        let of_first = response.header("etag") == "\"v1\"";
        let size = self.sizes[usize::from(!of_first)];
        let (slice, of) = told
            .strip_prefix("bytes ")
            .unwrap()
            .split_once('/')
            .unwrap();
        let (first, last) = slice.split_once('-').unwrap();
        let [first, last, of]: [usize; 3] = [first, last, of].map(|number| number.parse().unwrap());
        let wanted = part(size).unwrap();
        assert!(
            (first, last) == wanted && of == size,
            "{range} of {size}: {response}"
        );
        let sequence = response.headers.number("x-origin-sequence").unwrap() as u64;
        let whole = body::make("/a", sequence, size);
        assert!(response.body == whole[first..=last], "{range}: {response}");
    }
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_range_that_comes_while_the_store_asks_is_of_the_object_that_comes(workers: usize) {
    const POLICY: &str = "origin: {kind: http}\nrequest: {cache_control: obey}\n";
    for sizes in [[LONG, SHORT], [SHORT, LONG]] {
        let versions = Versions::start(sizes, 600).await;
        let edge = Edge::http(&versions.origin).workers(workers).policy(POLICY);
        let edge = edge.env("SLUICE_HOT_BYTES", "0").start().await;
        eventually("a hit", async || edge.get("/a").await.is_hit()).await;
        // Every worker knows the object and its length.
        stampede(edge.address(), 30, "/a").await.all(200);
        let outcomes = versions.ask_meanwhile(edge.address(), 30).await;
        for (n, outcome) in outcomes.iter().enumerate() {
            versions.assert_part(n % RANGES.len(), outcome.as_ref().unwrap());
        }
        let faults = edge.counter("sluice_host_errors").await;
        assert_eq!(faults, 0, "{:?}", edge.log_lines("sluice: "));
    }
}

#[tokio::test]
async fn a_range_follows_an_object_that_changes_its_length() {
    let origin = Origin::start().ready().await;
    let of = |size, tag| Reply::ok(size).max_age(1).etag(tag);
    origin.on_each("/a", [of(LONG, "v1"), of(SHORT, "v2")]);
    let edge = Edge::http(&origin).workers(1).start().await;
    eventually("the second version", async || {
        let response = edge.send("GET", "/a", &[("range", "bytes=-100")]).await;
        assert_eq!(
            (response.status, response.body.len()),
            (206, 100),
            "{response}"
        );
        let sequence = response.headers.number("x-origin-sequence").unwrap() as u64;
        let of_first = response.header("etag") == "\"v1\"";
        let size = if of_first { LONG } else { SHORT };
        let whole = body::make("/a", sequence, size);
        assert!(response.body == whole[size - 100..], "{response}");
        !of_first
    })
    .await;
    let beyond = edge
        .send("GET", "/a", &[("range", "bytes=1000-1999")])
        .await;
    assert_eq!(beyond.status, 416, "{beyond}");
}
