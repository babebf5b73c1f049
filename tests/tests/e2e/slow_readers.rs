// SPDX-License-Identifier: Apache-2.0
//! Who reads slowly reads one version of an object, whatever the store gets meanwhile.

use sluice_tests::body;
use sluice_tests::client::{Client, Failure, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::matrix::on_each;
use sluice_tests::message::Head;
use sluice_tests::origin::{Origin, Reply};
use std::net::SocketAddr;

/// More than what the kernel and Envoy keep of a response that nobody reads.
const SIZE: usize = 8 << 20;

pub fn version(tag: &str) -> Reply {
    Reply::ok(SIZE).max_age(1).etag(tag)
}

/// A client that has read no more than the head of a response.
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

#[tokio::test]
async fn a_slow_reader_gets_all_of_its_version_whatever_is_stored_meanwhile() {
    on_each(&[1, 2], async |cell| {
        let origin = Origin::start().ready().await;
        origin.on_each("/a", [version("one"), version("two")]);
        let edge = Edge::http(&origin).cell(cell).start().await;
        let mut readers = Vec::new();
        while readers.len() < 4 {
            readers.push(SlowReader::begin(edge.address(), "/a").await);
        }
        eventually("the other version", async || {
            edge.get("/a").await.header("etag") == "\"two\""
        })
        .await;
        for reader in readers {
            assert_eq!(reader.finish().await, Read::Whole, "{cell}");
        }
        assert_eq!(edge.counter("sluice_host_errors").await, 0, "{cell}");
    })
    .await;
}

#[tokio::test]
async fn a_slow_reader_of_an_object_that_stays_the_same_gets_all_of_it() {
    on_each(&[2], async |cell| {
        let origin = Origin::start().ready().await;
        origin.on("/a", version("one"));
        let edge = Edge::http(&origin).cell(cell).start().await;
        fill(&edge).await;
        let reader = SlowReader::begin(edge.address(), "/a").await;
        eventually("a revalidation", async || {
            edge.get("/a").await;
            origin.count("/a") > 1
        })
        .await;
        assert_eq!(reader.finish().await, Read::Whole, "{cell}");
    })
    .await;
}
