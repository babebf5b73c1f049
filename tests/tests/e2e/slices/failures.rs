// SPDX-License-Identifier: Apache-2.0
//! A slice that fails, a dead VM and a panic in the slicer end only responses that need them.

use super::world::{Asked, KNOWN, OBJECT, SLICE, assert_whole, edge, object, origin};
use sluice::settings::Runtime;
use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, Failure, request};
use sluice_tests::edge::direct::Direct;
use sluice_tests::eventually;
use sluice_tests::http::body;
use sluice_tests::machine::tool::trap_module_of;
use sluice_tests::origin::Reply;
use sluice_tests::server::gate::Gate;
use std::time::Duration;
use test_case::test_case;

#[tokio::test]
async fn a_first_slice_that_fails_is_an_error() {
    let origin = origin(&object(1)).await;
    let edge = edge(&origin).start().await;
    edge.send("HEAD", KNOWN, &[]).await;
    origin.on(KNOWN, Reply::status(503));
    let response = edge.get(KNOWN).await;
    assert_eq!(response.status, 503, "{response}");
    origin.on(KNOWN, object(1));
    eventually("the object", async || edge.get(KNOWN).await.status == 200).await;
    assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
}

#[test_case(&Reply::status(503); "with an error")]
#[test_case(&object(1).reset(); "with a reset")]
#[test_case(&object(1).reset_after(1000); "in its body")]
#[test_case(&object(1).close_after(1000); "with an early end")]
#[tokio::test]
async fn a_later_slice_that_fails_cuts_the_response_and_the_next_one_is_whole(failing: &Reply) {
    let origin = origin(&object(1)).await;
    let good = || object(1);
    let replies = std::iter::repeat_n(good(), 5).chain(std::iter::repeat_n(failing.clone(), 5));
    origin.on_each(KNOWN, replies.chain([good()]));
    let edge = edge(&origin).start().await;
    let mut client = Client::connect(edge.address()).await;
    match client.try_exchange(request("GET", KNOWN, &[])).await {
        Err(Failure::Truncated(response, _)) => {
            let content = &response.body;
            assert_eq!(body::check_start(KNOWN, content).unwrap().sequence, 1);
            assert!(content.len() >= SLICE, "{}", content.len());
        }
        Ok(response) => panic!("{response}"),
        Err(failure) => panic!("{failure}"),
    }
    edge.wait_for_counter("sluice_sliced_cut", 1).await;
    origin.on(KNOWN, good());
    eventually("the object", async || {
        let mut client = Client::connect(edge.address()).await;
        let whole = client.try_exchange(request("GET", KNOWN, &[])).await;
        whole.is_ok_and(|response| response.status == 200)
    })
    .await;
    assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    assert!(Asked::of(origin.requests(), KNOWN).heads <= 2);
}

#[tokio::test]
async fn a_panic_in_the_slicer_ends_its_own_response() {
    let origin = origin(&object(1)).await;
    let module = trap_module_of(Runtime::Native).display().to_string();
    let edge = edge(&origin).trapping().allow_log("a trap on demand");
    let edge = edge
        .workers(1)
        .env(Runtime::Native.variable(), module)
        .start()
        .await;
    let connection = Http2::connect(edge.address()).await;
    let mut reader = connection.start("GET", KNOWN, &[]).await.unwrap();
    assert_eq!(reader.head().await.unwrap().0, 200);
    let trap = edge.send("GET", KNOWN, &[("x-trap", "slicer")]).await;
    assert_eq!(trap.status, 503, "{trap}");
    let content = reader.read(usize::MAX).await.unwrap();
    assert_eq!(body::check(KNOWN, &content).unwrap().sequence, 1);
    assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
}

/// Checks that a body has only bytes of the object.
fn assert_is_start(content: &[u8]) {
    let start = body::part(KNOWN, 1, OBJECT, 0..content.len());
    assert!(content == start, "{}", body::preview(content));
}

#[test_case("edge"; "of the edge")]
#[test_case("origin"; "of the origin")]
#[tokio::test]
async fn a_dead_vm_ends_responses_of_its_worker_and_the_edge_lives(role: &str) {
    let gate = Gate::new();
    let origin = origin(&object(1).pace(64 << 10, Duration::from_millis(5))).await;
    origin.on("/trap", Reply::ok(1_000).hold(&gate));
    gate.open();
    // Envoy ends requests that wait in the dead VM after this time.
    let direct = Direct {
        stream_idle: Some(Duration::from_secs(4)),
        ..Direct::default()
    };
    let edge = edge(&origin).workers(2).trapping();
    let mut edge = edge.direct(direct).start().await;
    let connection = Http2::connect(edge.address()).await;
    let mut reader = connection.start("GET", KNOWN, &[]).await.unwrap();
    assert_eq!(reader.head().await.unwrap().0, 200);
    let others = Crowd::connect(edge.address(), 6).await.fire(KNOWN);
    let trap = connection.send("GET", "/trap", &[("x-trap", role)]).await;
    assert_eq!(trap.unwrap().0, 503);
    // A response of that worker ends, whole or cut. Its bytes are those of the object.
    let mut content = Vec::new();
    while let Ok(data) = tokio::time::timeout(sluice_tests::PATIENCE, reader.read(1))
        .await
        .unwrap()
    {
        if data.is_empty() {
            break;
        }
        content.extend(data);
    }
    assert_is_start(&content);
    let outcomes = others.land().await;
    println!("{} bytes, others {:?}", content.len(), outcomes.tally());
    for outcome in &outcomes.0 {
        match outcome {
            Ok(response) if response.status == 200 => assert_whole(response, KNOWN, 1),
            Ok(response) => assert!(matches!(response.status, 503 | 504), "{response}"),
            Err(Failure::Truncated(response, _)) => {
                assert_is_start(&response.body);
            }
            Err(Failure::NoResponse) => {}
            Err(failure) => panic!("{failure}"),
        }
    }
    for _ in 0..4 {
        eventually("the object", async || {
            let mut client = Client::connect(edge.address()).await;
            let whole = client.try_exchange(request("GET", KNOWN, &[])).await;
            whole.is_ok_and(|response| response.status == 200)
        })
        .await;
    }
    assert!(edge.alive());
}
