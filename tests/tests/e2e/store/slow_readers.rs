// SPDX-License-Identifier: Apache-2.0
//! A slow client gets one version of an object, whatever is stored meanwhile. The tests measure its cost in memory.

use sluice_tests::client::{Client, Failure, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::http::body;
use sluice_tests::http::message::Head;
use sluice_tests::origin::{Origin, Reply};
use std::net::SocketAddr;
use std::time::Duration;
use test_case::test_case;

/// Size above the amount of a response that the kernel and Envoy buffer for a client that does not read.
const SIZE: usize = 8 << 20;
/// Number of clients that read slowly.
const READERS: usize = 10;

pub fn version(tag: &str) -> Reply {
    Reply::ok(SIZE).max_age(1).etag(tag)
}

/// A client that has read only the head of a response.
pub struct SlowReader {
    client: Client,
    head: Head,
    response: Response,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    Whole,
    /// A part of one version.
    Cut,
    Mixed(String),
}

impl SlowReader {
    pub async fn begin(address: SocketAddr, path: &str) -> Self {
        let mut client = Client::connect_narrow(address).await;
        client.send(request("GET", path, &[])).await.unwrap();
        let (head, response) = client.head().await.unwrap();
        assert_eq!(response.status, 200, "{response}");
        Self {
            client,
            head,
            response,
        }
    }

    pub async fn rest(mut self) -> Result<Response, Failure> {
        self.client.rest(&self.head, self.response).await
    }

    /// Reads the rest of `/a`.
    pub async fn finish(self) -> Read {
        let (body, whole) = match self.rest().await {
            Ok(response) => (response.body, true),
            Err(Failure::Truncated(response, _)) => (response.body, false),
            Err(failure) => panic!("{failure}"),
        };
        match body::check_start("/a", &body) {
            Err(wrong) => Read::Mixed(wrong),
            Ok(_) if whole => Read::Whole,
            Ok(_) => Read::Cut,
        }
    }
}

async fn fill(edge: &Edge) {
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_slow_reader_gets_all_of_its_version_whatever_is_stored_meanwhile(workers: usize) {
    let origin = Origin::start().ready().await;
    origin.on_each("/a", [version("one"), version("two")]);
    let edge = Edge::http(&origin).workers(workers).start().await;
    let mut readers = Vec::new();
    while readers.len() < 4 {
        readers.push(SlowReader::begin(edge.address(), "/a").await);
    }
    eventually("the other version", async || {
        edge.get("/a").await.header("etag") == "\"two\""
    })
    .await;
    for reader in readers {
        assert_eq!(reader.finish().await, Read::Whole);
    }
    assert_eq!(edge.counter("sluice_host_errors").await, 0);
}

#[tokio::test]
async fn a_slow_reader_of_an_object_that_stays_the_same_gets_all_of_it() {
    let origin = Origin::start().ready().await;
    origin.on("/a", version("one"));
    let edge = Edge::http(&origin).workers(2).start().await;
    fill(&edge).await;
    let reader = SlowReader::begin(edge.address(), "/a").await;
    eventually("a revalidation", async || {
        edge.get("/a").await;
        origin.count("/a") > 1
    })
    .await;
    assert_eq!(reader.finish().await, Read::Whole);
}

/// Additional memory in KiB that an edge takes while slow clients read an object of [`SIZE`] bytes. The edge stores
/// the object if `stored` is true.
async fn held_by_slow_readers(stored: bool) -> u64 {
    let origin = Origin::start().ready().await;
    origin.on("/a", version("one").max_age(600));
    let bound = if stored { SIZE } else { SIZE - 1 };
    let edge = Edge::http(&origin).env("SLUICE_CACHE_MAX_OBJECT_BYTES", bound.to_string());
    let edge = edge.start().await;
    // The first response allocates memory that all later ones share.
    for _ in 0..4 {
        let response = edge.get("/a").await;
        assert_eq!(response.stamp("/a").size, SIZE);
    }
    if stored {
        fill(&edge).await;
    } else {
        assert!(!edge.get("/a").await.is_hit());
    }
    let before = edge.resident_kib();
    let mut readers = Vec::new();
    while readers.len() < READERS {
        readers.push(SlowReader::begin(edge.address(), "/a").await);
    }
    let mut most = before;
    eventually("no more comes", async || {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (former, now) = (most, edge.resident_kib());
        most = former.max(now);
        now <= former
    })
    .await;
    most - before
}

/// The default of `SLUICE_CACHE_MAX_OBJECT_BYTES` is small because Envoy's cache keeps reading, however slowly a client
/// takes the object.
#[tokio::test]
async fn slow_readers_hold_what_they_read_if_it_is_stored_and_hardly_anything_if_it_passes() {
    let object = (SIZE * READERS / 1024) as u64;
    let (held, passing) = (
        held_by_slow_readers(true).await,
        held_by_slow_readers(false).await,
    );
    println!(
        "{READERS} clients of {SIZE} bytes: {held} KiB out of the store, {passing} KiB passing"
    );
    assert!(
        held > object / 2,
        "a newer Envoy? Then larger objects may be stored."
    );
    assert!(held < object * 5 / 4, "more than each of them has to get");
    assert!(passing < object / 4, "{passing} KiB");
}
