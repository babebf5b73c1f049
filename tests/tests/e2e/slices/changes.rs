// SPDX-License-Identifier: Apache-2.0
//! A client gets bytes of one version of an object: all of them, or those in front of a cut.

use super::world::{KNOWN, OBJECT, assert_whole, edge, object, origin};
use sluice_tests::client::{Client, Failure, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::http::body;
use sluice_tests::http::message::Head;
use sluice_tests::server::requests::Request;
use std::time::Duration;

/// A client that has read only the headers of version 1.
struct Reader {
    client: Client,
    head: Head,
    response: Response,
}

impl Reader {
    async fn begin(edge: &Edge) -> Self {
        let mut client = Client::connect_narrow(edge.address()).await;
        client.send(request("GET", KNOWN, &[])).await.unwrap();
        let (head, response) = client.head().await.unwrap();
        assert_eq!(response.header("etag"), "\"v1\"", "{response}");
        Self {
            client,
            head,
            response,
        }
    }

    /// Reads the rest, which is of version 1. Returns the number of bytes.
    async fn finish(mut self) -> usize {
        let content = match self.client.rest(&self.head, self.response).await {
            Ok(response) => response.body,
            Err(Failure::Truncated(response, _)) => response.body,
            Err(failure) => panic!("{failure}"),
        };
        let stamp = body::check_start(KNOWN, &content);
        assert_eq!(stamp.unwrap().sequence, 1);
        content.len()
    }
}

#[tokio::test]
async fn a_response_is_cut_when_its_object_changes_and_the_next_client_gets_the_new_one() {
    let origin = origin(&object(1)).await;
    let edge = edge(&origin).start().await;
    let reader = Reader::begin(&edge).await;
    origin.on(KNOWN, object(2));
    let read = reader.finish().await;
    assert!(read < OBJECT, "the rest is not cut");
    edge.wait_for_counter("sluice_sliced_cut", 1).await;
    // The edge has asked for the headers of version 2 without a client.
    edge.wait_for_counter("sluice_slice_indexes_asked", 2).await;
    eventually("a whole object", async || {
        let mut client = Client::connect(edge.address()).await;
        let response = client.try_exchange(request("GET", KNOWN, &[])).await;
        response.is_ok_and(|response| response.stamp(KNOWN).sequence == 2)
    })
    .await;
    for _ in 0..3 {
        assert_whole(&edge.get(KNOWN).await, KNOWN, 2);
    }
    assert_eq!(edge.counter("sluice_host_errors").await, 0);
}

#[tokio::test]
async fn a_response_out_of_the_store_stays_whole_when_its_object_changes() {
    let origin = origin(&object(1)).await;
    let edge = edge(&origin).start().await;
    assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    let reader = Reader::begin(&edge).await;
    origin.on(KNOWN, object(2));
    assert_eq!(reader.finish().await, OBJECT);
}

/// Reads the object until it has been read whole `times` times. Returns the versions.
async fn read_often(edge: &Edge, times: usize) -> Vec<u64> {
    let mut versions = Vec::new();
    while versions.len() < times {
        let mut client = Client::connect(edge.address()).await;
        match client.try_exchange(request("GET", KNOWN, &[])).await {
            Ok(response) => versions.push(response.stamp(KNOWN).sequence),
            Err(Failure::Truncated(response, _)) => {
                let start = body::check_start(KNOWN, &response.body);
                assert!(response.body.len() < 63 || start.is_ok(), "{start:?}");
            }
            Err(failure) => panic!("{failure}"),
        }
    }
    versions
}

#[tokio::test]
async fn clients_of_an_object_that_changes_all_the_time_never_get_a_mix() {
    let paced = |version| object(version).pace(256 << 10, Duration::from_millis(3));
    let origin = origin(&paced(1)).await;
    let edge = edge(&origin).workers(2).start().await;
    let changing = async {
        for version in 2..=12 {
            origin
                .requests()
                .wait_until("more requests", more(version))
                .await;
            origin.on(KNOWN, paced(version));
        }
    };
    let reading = async {
        tokio::join!(
            read_often(&edge, 6),
            read_often(&edge, 6),
            read_often(&edge, 6)
        )
    };
    tokio::select! {
        versions = reading => println!("{versions:?}"),
        () = async { changing.await; std::future::pending().await } => {}
    }
}

/// Whether a version has been asked for often enough to be replaced by the next.
fn more(version: u64) -> impl Fn(&[Request]) -> bool {
    let least = usize::try_from(version).unwrap() * 30;
    move |seen| seen.len() >= least
}
