// SPDX-License-Identifier: Apache-2.0
//! A client that reads slowly holds a few slices in memory, and not its object.

use super::world::{KNOWN, SLICES, assert_whole, edge, object, origin};
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::http::message::Head;
use std::time::Duration;

const READERS: u64 = 40;
/// Bounds on the memory for each reader of an object that is stored, and of one that is not, in KiB.
const HELD: u64 = 4 << 10;
const HELD_COLD: u64 = 7 << 10;

/// A client that has read only the headers of its response.
type Reader = (Client, Head, Response);

/// Opens clients that read only the headers of their responses, and returns them when the edge takes no more memory
/// for them, with the memory in KiB.
async fn readers(edge: &Edge, path: impl Fn(u64) -> String) -> (Vec<Reader>, u64) {
    let before = edge.resident_kib();
    let mut readers = Vec::new();
    for number in 0..READERS {
        let mut client = Client::connect_narrow(edge.address()).await;
        let request = request("GET", &path(number), &[]);
        client.send(request).await.unwrap();
        let (head, response) = client.head().await.unwrap();
        readers.push((client, head, response));
    }
    let mut most = before;
    eventually("no more comes", async || {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (former, now) = (most, edge.resident_kib());
        most = former.max(now);
        now <= former
    })
    .await;
    (readers, most - before)
}

#[tokio::test]
async fn slow_readers_of_a_stored_object_hold_less_than_four_slices_each() {
    let origin = origin(&object(1)).await;
    let edge = edge(&origin).start().await;
    for _ in 0..3 {
        assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    }
    let (readers, held) = readers(&edge, |_| KNOWN.to_owned()).await;
    println!("{READERS} clients of {SLICES} slices hold {held} KiB");
    assert!(held < READERS * HELD, "{held} KiB");
    for (mut client, head, response) in readers.into_iter().take(3) {
        assert_whole(&client.rest(&head, response).await.unwrap(), KNOWN, 1);
    }
    assert_eq!(origin.count(KNOWN), 1 + SLICES);
}

#[tokio::test]
async fn slow_readers_of_objects_that_are_not_stored_hold_less_than_seven_slices_each() {
    let origin = origin(&object(1)).await;
    origin.on("*", object(1));
    let edge = edge(&origin).start().await;
    let path = |number| format!("/{number}.iso");
    let (readers, held) = readers(&edge, path).await;
    println!("{READERS} clients of {SLICES} cold slices hold {held} KiB");
    assert!(held < READERS * HELD_COLD, "{held} KiB");
    for (number, (mut client, head, response)) in (0..3).zip(readers) {
        let response = client.rest(&head, response).await.unwrap();
        assert_whole(&response, &path(number), 1);
    }
}
