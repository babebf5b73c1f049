// SPDX-License-Identifier: Apache-2.0
//! A client that stops reading for good. Its response ends after the time without a byte, and leaves nothing behind.

use super::world::{Asked, KNOWN, OBJECT, assert_whole, edge, object, origin, settle};
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, Failure, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::direct::Direct;
use sluice_tests::http::body;
use sluice_tests::origin::Origin;
use std::time::{Duration, Instant};
use test_case::test_case;

/// Time without a byte after which Envoy ends a request.
const IDLE: Duration = Duration::from_secs(2);
/// Gauges of what is in flight for the response. The last one is that of the requests from the slicer.
const IN_FLIGHT: [&str; 4] = [
    "sluice_sliced_now",
    "sluice_flights_now",
    "http.edge.downstream_rq_active",
    "http.sluice_slices.downstream_rq_active",
];

/// Starts an edge with a short time without a byte, and has it store the object if `stored`.
async fn start(origin: &Origin, stored: bool) -> Edge {
    let direct = Direct {
        stream_idle: Some(IDLE),
        ..Direct::default()
    };
    let edge = edge(origin).workers(2).direct(direct).start().await;
    if stored {
        assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    }
    edge
}

/// Checks that nothing is in flight any more, and that another client gets the object without a second fetch of a
/// slice.
async fn assert_nothing_is_left(origin: &Origin, edge: &Edge) {
    for gauge in IN_FLIGHT {
        edge.wait_for_value(gauge, 0).await;
    }
    settle(origin).await;
    assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    let asked = Asked::of(origin.requests(), KNOWN);
    assert_eq!((asked.heads, asked.wholes), (1, 0));
    asked.assert_each_slice_once();
}

#[test_case(true; "of a stored object")]
#[test_case(false; "of a cold object")]
#[tokio::test]
async fn a_response_whose_client_stops_reading_ends_and_others_are_served(stored: bool) {
    let origin = origin(&object(1)).await;
    let edge = start(&origin, stored).await;
    let mut client = Client::connect_narrow(edge.address()).await;
    client.send(request("GET", KNOWN, &[])).await.unwrap();
    let (head, response) = client.head().await.unwrap();
    edge.wait_for_value("sluice_sliced_now", 1).await;
    assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    assert_nothing_is_left(&origin, &edge).await;
    match client.rest(&head, response).await {
        Err(Failure::Truncated(response, _)) => {
            let received = response.body.len();
            assert!(received < OBJECT / 2, "{received} bytes");
            assert!(response.body == body::part(KNOWN, 1, OBJECT, 0..received));
        }
        other => panic!("not cut: {other:?}"),
    }
}

#[tokio::test]
async fn a_stream_of_http2_that_is_not_read_ends_and_its_connection_lives() {
    let origin = origin(&object(1)).await;
    let edge = start(&origin, false).await;
    let connection = Http2::connect(edge.address()).await;
    let mut stopped = connection.start("GET", KNOWN, &[]).await.unwrap();
    assert_eq!(stopped.head().await.unwrap().0, 200);
    edge.wait_for_value("sluice_sliced_now", 1).await;
    edge.wait_for_value("http.edge.downstream_rq_active", 0)
        .await;
    let (status, ..) = connection.send("HEAD", KNOWN, &[]).await.unwrap();
    assert_eq!(status, 200);
    assert_nothing_is_left(&origin, &edge).await;
    drop(stopped);
}

#[tokio::test]
async fn control_a_client_that_reads_now_and_then_gets_the_object() {
    let origin = origin(&object(1)).await;
    let edge = start(&origin, true).await;
    let connection = Http2::connect(edge.address()).await;
    let mut slow = connection.start("GET", KNOWN, &[]).await.unwrap();
    assert_eq!(slow.head().await.unwrap().0, 200);
    let (begun, mut content) = (Instant::now(), Vec::new());
    while begun.elapsed() < 2 * IDLE {
        tokio::time::sleep(IDLE / 4).await;
        content.extend(slow.read(1 << 20).await.unwrap());
    }
    content.extend(slow.read(OBJECT - content.len()).await.unwrap());
    assert!(content == body::part(KNOWN, 1, OBJECT, 0..OBJECT));
}
