// SPDX-License-Identifier: Apache-2.0
//! Any number of clients of a cold large object cause at most one HEAD and one request for each slice, and none waits
//! for the end of the object.

use super::world::{
    Asked, KNOWN, OBJECT, SLICE, SLICES, UNKNOWN, assert_part, assert_whole, edge, object, origin,
    settle,
};
use sluice_tests::chance::rng::Rng;
use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::http::body;
use sluice_tests::origin::Reply;
use std::ops::Range;
use std::time::Duration;
use test_case::test_case;

/// Number of clients of the whole object by HTTP/1.1, of the whole object over one HTTP/2 connection, and of parts.
const WHOLES: usize = 10;
const STREAMS: usize = 4;
const PARTS: usize = 10;
/// Greatest median of the time to the first byte.
const FIRST_BYTE: Duration = Duration::from_millis(300);

/// The object behind a distant origin that sends about 80 MiB/s.
fn distant() -> Reply {
    let reply = object(1).delay(Duration::from_millis(30));
    reply.pace(256 << 10, Duration::from_millis(3))
}

/// Ranges at random offsets.
fn parts() -> Vec<Range<usize>> {
    let mut rng = Rng::new(39);
    let ranges = (0..PARTS).map(|_| rng.below(OBJECT - 2 * SLICE));
    ranges.map(|from| from..from + SLICE + 1_000).collect()
}

/// Clients of all kinds at the same time. Returns their whole responses by HTTP/1.1.
async fn crowd(edge: &Edge, path: &str) -> Vec<Response> {
    let parts = parts();
    let connection = Http2::connect(edge.address()).await;
    let whole = Crowd::connect(edge.address(), WHOLES).await;
    let ranged = Crowd::connect(edge.address(), PARTS).await;
    let ranged = ranged.fire_each(|n| {
        let range = format!("bytes={}-{}", parts[n].start, parts[n].end - 1);
        request("GET", path, &[("range", &range)])
    });
    let whole = whole.fire(path);
    let streams = async {
        let (a, b, c, d) = tokio::join!(
            connection.get(path),
            connection.get(path),
            connection.get(path),
            connection.get(path)
        );
        [a, b, c, d]
    };
    let (whole, ranged, streams) = tokio::join!(whole.land(), ranged.land(), streams);
    assert_eq!(streams.len(), STREAMS);
    for stream in streams {
        let (status, _, content) = stream.unwrap();
        assert_eq!(status, 200);
        assert_eq!(body::check(path, &content).unwrap().sequence, 1);
    }
    for response in ranged.responses() {
        let range = response.header("content-range");
        let from = range
            .strip_prefix("bytes ")
            .and_then(|range| range.split('-').next());
        let from: usize = from.unwrap().parse().unwrap();
        assert_part(response, path, from..from + SLICE + 1_000);
    }
    assert_eq!(ranged.responses().count(), PARTS);
    whole.all(200).into_iter().cloned().collect()
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn many_clients_of_a_cold_known_path_fetch_each_slice_once(workers: usize) {
    let origin = origin(&distant()).await;
    let edge = edge(&origin).workers(workers).start().await;
    let whole = crowd(&edge, KNOWN).await;
    settle(&origin).await;
    let asked = Asked::of(origin.requests(), KNOWN);
    assert_eq!((asked.heads, asked.wholes), (1, 0));
    asked.assert_each_slice_once();
    for response in &whole {
        assert_whole(response, KNOWN, 1);
    }
    let again = edge.get(KNOWN).await;
    assert_whole(&again, KNOWN, 1);
    assert!(again.is_hit(), "{again}");
    assert!(
        again
            .cache_status()
            .ends_with(&format!("detail=slices:{SLICES}")),
        "{again}"
    );
    assert_eq!(Asked::of(origin.requests(), KNOWN), asked);
}

#[tokio::test]
async fn the_first_byte_does_not_wait_for_the_object() {
    let origin = origin(&distant()).await;
    let edge = edge(&origin).start().await;
    let mut times = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..9 {
        let mut client = Client::connect(edge.address()).await;
        client.send(request("GET", KNOWN, &[])).await.unwrap();
        let (head, response) = client.head().await.unwrap();
        times.push(response.first_byte);
        clients.push((client, head, response));
    }
    times.sort();
    println!("first bytes: {times:?}");
    assert!(times[4] < FIRST_BYTE, "{times:?}");
    for (mut client, head, response) in clients {
        assert_whole(&client.rest(&head, response).await.unwrap(), KNOWN, 1);
    }
}

#[tokio::test]
async fn an_unknown_path_passes_to_its_first_client_once_and_is_sliced_for_all_others() {
    let origin = origin(&distant()).await;
    let edge = edge(&origin).start().await;
    for response in crowd(&edge, UNKNOWN).await {
        assert_whole(&response, UNKNOWN, 1);
    }
    settle(&origin).await;
    let asked = Asked::of(origin.requests(), UNKNOWN);
    assert!(asked.heads <= 1 && asked.wholes <= 1, "{asked:?}");
    asked.assert_each_slice_once();
}

#[tokio::test]
async fn control_without_slices_each_client_fetches_the_object() {
    let origin = origin(&object(1)).await;
    let edge = Edge::http(&origin).origin_decides();
    let edge = edge.env("SLUICE_SLICE_BYTES", "0").start().await;
    let flight = Crowd::connect(edge.address(), 3).await.fire(KNOWN);
    for response in flight.land().await.all(200) {
        assert_whole(response, KNOWN, 1);
    }
    assert_eq!(Asked::of(origin.requests(), KNOWN).wholes, 3);
}
