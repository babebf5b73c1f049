// SPDX-License-Identifier: Apache-2.0
//! One connection gets a bounded number of responses in slices at one time. Its other requests wait, and those of other
//! connections do not.

use crate::slices::world::{KNOWN, assert_whole, edge, object, origin};
use sluice_tests::client::http2::{Http2, Stream};
use sluice_tests::http::body;

const POLICY: &str = "origin: {kind: http}\nstore: {slices: {streams: 2}}\n";

/// Reads a response to its end, and checks its bytes.
async fn read(mut stream: Stream) {
    assert_eq!(stream.head().await.unwrap().0, 200);
    let content = stream.read(usize::MAX).await.unwrap();
    assert_eq!(body::check(KNOWN, &content).unwrap().sequence, 1);
}

#[tokio::test]
async fn requests_of_a_connection_beyond_its_bound_wait_for_their_turn() {
    let origin = origin(&object(1)).await;
    let edge = edge(&origin).policy(POLICY).workers(1).start().await;
    assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    let connection = Http2::connect(edge.address()).await;
    let mut streams = Vec::new();
    for _ in 0..5 {
        streams.push(connection.start("GET", KNOWN, &[]).await.unwrap());
    }
    edge.wait_for_counter("sluice_sliced_queued", 3).await;
    edge.wait_for_value("sluice_sliced_now", 2).await;
    // Another connection has other turns.
    assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    // The turn of a client that leaves is given to the next one.
    streams.pop().unwrap().reset(h2::Reason::CANCEL);
    streams.remove(0).reset(h2::Reason::CANCEL);
    let reads: Vec<_> = streams
        .into_iter()
        .map(|stream| tokio::spawn(read(stream)))
        .collect();
    for stream in reads {
        stream.await.unwrap();
    }
    edge.wait_for_value("sluice_sliced_now", 0).await;
    assert_eq!(edge.counter("sluice_sliced_queued").await, 3);
    assert_eq!(edge.counter("sluice_sliced_cut").await, 0);
}
