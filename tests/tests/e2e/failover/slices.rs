// SPDX-License-Identifier: Apache-2.0
//! All slices of a response come from one version of the object, whichever origin has it.

use super::world::Pair;
use sluice_tests::client::{Client, Failure, request};
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::http::body;
use sluice_tests::origin::{Origin, Reply};

/// Size of the object: 24 slices and a short one.
const OBJECT: usize = (24 << 20) + 12_345;
/// Path of an object that is sliced for its first client.
const PATH: &str = "/large.iso";

/// A version of the object.
fn object(version: u64) -> Reply {
    Reply::ok(OBJECT).version(version).max_age(600)
}

/// The bytes that a client gets if `first` fails all requests for `target` after the headers of the response.
async fn read_while_it_fails(edge: &Edge, first: &Origin, target: &str) -> Vec<u8> {
    let mut client = Client::connect_narrow(edge.address()).await;
    client.send(request("GET", PATH, &[])).await.unwrap();
    let (head, response) = client.head().await.unwrap();
    assert_eq!(response.header("etag"), "\"v1\"", "{response}");
    first.on(target, Reply::status(503));
    match client.rest(&head, response).await {
        Ok(response) => response.body,
        Err(Failure::Truncated(response, _)) => response.body,
        Err(failure) => panic!("{failure}"),
    }
}

#[tokio::test]
async fn a_large_object_is_never_put_together_from_two_versions() {
    let pair = Pair::start().await;
    let [first, second] = [format!("/site{PATH}"), format!("/other/copy{PATH}")];
    pair.first.on(&first, object(1));
    pair.second.on(&second, object(2));
    let edge = pair.buckets().start().await;
    let content = read_while_it_fails(&edge, &pair.first, &first).await;
    assert!(content.len() < OBJECT, "the rest is not cut");
    assert!(body::make(&first, 1, OBJECT).starts_with(&content));
    let whole = body::make(&second, 2, OBJECT);
    eventually("the version of the second bucket", async || {
        let mut client = Client::connect(edge.address()).await;
        let response = client.try_exchange(request("GET", PATH, &[])).await;
        response.is_ok_and(|response| response.body == whole)
    })
    .await;
    for request in pair.second.requests().of(&second) {
        let is_part = request.headers.get("range").is_some();
        let is_bound = request.headers.get("if-match").is_some();
        assert_eq!(is_part, is_bound, "{:?}", request.headers);
    }
}

#[tokio::test]
async fn slices_of_an_http_server_come_from_that_server_alone() {
    let pair = Pair::start().await;
    // Equal tags by chance.
    pair.first.on(PATH, object(1));
    pair.second.on(PATH, object(1));
    let edge = pair.servers().origin_decides().start().await;
    let content = read_while_it_fails(&edge, &pair.first, PATH).await;
    assert!(content.len() < OBJECT, "the rest is not cut");
    let whole = body::make(PATH, 1, OBJECT);
    assert!(whole.starts_with(&content));
    let has_part = |request: &_| {
        let request: &sluice_tests::server::requests::Request = request;
        request.headers.get("range").is_some()
    };
    assert_eq!(pair.second.requests().matching(has_part), 0);
}
