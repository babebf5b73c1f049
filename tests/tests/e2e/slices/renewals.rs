// SPDX-License-Identifier: Apache-2.0
//! A client whose response has not begun gets the object as it is now, if the object has changed.

use super::world::{Asked, KNOWN, OBJECT, SLICES, assert_whole, edge, object, origin, settle};
use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::http::body;
use sluice_tests::origin::{Origin, Reply};
use std::time::Duration;
use test_case::test_case;

/// An edge that knows version 1 of the object, and an origin that has another object now.
async fn start(now: Reply) -> (Origin, Edge) {
    let origin = origin(&object(1)).await;
    let edge = edge(&origin).start().await;
    edge.send("HEAD", KNOWN, &[]).await;
    origin.on(KNOWN, now);
    (origin, edge)
}

fn assert_is_sliced(response: &Response) {
    let told = response.cache_status();
    assert!(told.ends_with(&format!("detail=slices:{SLICES}")), "{told}");
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn clients_get_the_new_object_in_slices_after_one_head_of_each_worker(workers: usize) {
    let origin = origin(&object(1)).await;
    let edge = edge(&origin).workers(workers).start().await;
    edge.send("HEAD", KNOWN, &[]).await;
    origin.on(KNOWN, object(2));
    let flight = Crowd::connect(edge.address(), 6).await.fire(KNOWN);
    for response in flight.land().await.all(200) {
        assert_whole(response, KNOWN, 2);
        assert_eq!(response.header("etag"), "\"v2\"", "{response}");
        assert_is_sliced(response);
    }
    settle(&origin).await;
    let asked = Asked::of(origin.requests(), KNOWN);
    assert_eq!(asked.wholes, 0, "{asked:?}");
    assert!(asked.heads <= 1 + workers, "{asked:?}");
    let again = edge.get(KNOWN).await;
    assert_whole(&again, KNOWN, 2);
    assert!(again.is_hit(), "{again}");
    assert_eq!(edge.counter("sluice_sliced_passed").await, 0);
    assert_eq!(edge.counter("sluice_host_errors").await, 0);
}

#[tokio::test]
async fn a_client_that_reads_slowly_gets_all_of_the_new_object() {
    let (_origin, edge) = start(object(2)).await;
    let mut client = Client::connect_narrow(edge.address()).await;
    client.send(request("GET", KNOWN, &[])).await.unwrap();
    let (head, response) = client.head().await.unwrap();
    for _ in 0..2 {
        assert_whole(&edge.get(KNOWN).await, KNOWN, 2);
    }
    assert_whole(&client.rest(&head, response).await.unwrap(), KNOWN, 2);
}

#[tokio::test]
async fn an_http2_client_gets_the_new_object() {
    let (_origin, edge) = start(object(2)).await;
    let connection = Http2::connect(edge.address()).await;
    let mut stream = connection.start("GET", KNOWN, &[]).await.unwrap();
    assert_eq!(stream.head().await.unwrap().0, 200);
    let content = stream.read(usize::MAX).await.unwrap();
    let stamp = body::check(KNOWN, &content).unwrap();
    assert_eq!((stamp.size, stamp.sequence), (OBJECT, 2));
}

#[tokio::test]
async fn conditions_and_ranges_are_decided_by_the_new_version() {
    let shorter = || Reply::ok(20 << 20).version(4).max_age(600);
    let (origin, edge) = start(object(2)).await;
    let unmodified = edge
        .send("GET", KNOWN, &[("if-none-match", "\"v2\"")])
        .await;
    assert_eq!(unmodified.status, 304, "{unmodified}");
    assert_eq!(unmodified.header("etag"), "\"v2\"", "{unmodified}");

    origin.on(KNOWN, object(3));
    let failed = edge.send("GET", KNOWN, &[("if-match", "\"v2\"")]).await;
    assert_eq!(failed.status, 412, "{failed}");

    origin.on(KNOWN, shorter());
    let range = [("range", "bytes=22000000-")];
    let behind = edge.send("GET", KNOWN, &range).await;
    assert_eq!(behind.status, 416, "{behind}");
    assert_eq!(behind.header("content-range"), "bytes */20971520");

    origin.on(KNOWN, object(5));
    let part = edge.send("GET", KNOWN, &[("range", "bytes=-100")]).await;
    assert_eq!(part.status, 206, "{part}");
    assert_eq!(part.header("etag"), "\"v5\"", "{part}");
    assert!(part.body == body::part(KNOWN, 5, OBJECT, OBJECT - 100..OBJECT));
    assert_eq!(edge.counter("sluice_host_errors").await, 0);
}

#[test_case(Reply::ok(1_000).version(2).max_age(600), 200; "a small object")]
#[test_case(Reply::status(404), 404; "no object")]
#[test_case(Reply::status(403), 403; "a private object")]
#[tokio::test]
async fn an_object_that_is_not_large_any_more_is_answered_like_any_object(now: Reply, status: u16) {
    let (_origin, edge) = start(now).await;
    for _ in 0..2 {
        let response = edge.get(KNOWN).await;
        assert_eq!(response.status, status, "{response}");
        if status == 200 {
            assert_eq!(response.stamp(KNOWN).size, 1_000);
        }
    }
    assert_eq!(edge.counter("sluice_host_errors").await, 0);
}

#[tokio::test]
async fn an_object_that_has_lost_its_etag_is_passed_on_whole() {
    // NB: such a response is cut if its client reads much more slowly than the origin sends.
    let now = Reply::ok(OBJECT).max_age(600);
    let (_origin, edge) = start(now.pace(256 << 10, Duration::from_millis(10))).await;
    for _ in 0..2 {
        let response = edge.get(KNOWN).await;
        assert_eq!(response.status, 200, "{response}");
        assert_eq!(response.stamp(KNOWN).size, OBJECT);
    }
}

#[tokio::test]
async fn an_object_that_changes_at_each_request_is_an_error() {
    let (origin, edge) = start(object(2)).await;
    origin.on_each(KNOWN, (2..60).map(object));
    let response = edge.get(KNOWN).await;
    assert_eq!(response.status, 503, "{response}");
    origin.on(KNOWN, object(99));
    assert_whole(&edge.get(KNOWN).await, KNOWN, 99);
}
