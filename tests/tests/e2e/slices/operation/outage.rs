// SPDX-License-Identifier: Apache-2.0
//! While the origin is down, a response begins only if its first slice is stored, and is cut at the first slice that is
//! missing.

use crate::slices::world::{KNOWN, OBJECT, SLICE, assert_part, edge, object, origin};
use sluice_tests::client::{Client, Failure, request};
use sluice_tests::eventually;
use sluice_tests::http::body;
use sluice_tests::origin::Reply;

/// The object, which may be served stale for long.
fn perishable() -> Reply {
    let reply = Reply::ok(OBJECT).version(1);
    reply.header("cache-control", "max-age=1, stale-if-error=600")
}

#[tokio::test]
async fn a_stale_object_with_missing_slices_begins_where_its_first_slice_is_and_is_cut() {
    let origin = origin(&perishable()).await;
    let edge = edge(&origin).workers(1).start().await;
    let stored = format!("bytes=0-{}", 2 * SLICE - 1);
    let response = edge.send("GET", KNOWN, &[("range", &stored)]).await;
    assert_part(&response, KNOWN, 0..2 * SLICE);
    origin.refuse().await;
    eventually("a stale response", async || {
        let response = edge.send("GET", KNOWN, &[("range", &stored)]).await;
        assert_part(&response, KNOWN, 0..2 * SLICE);
        response.cache_status().contains("ttl=-")
    })
    .await;
    let missing = format!("bytes={}-{}", 5 * SLICE, 5 * SLICE + 9);
    let response = edge.send("GET", KNOWN, &[("range", &missing)]).await;
    assert!(response.status >= 500, "{response}");
    let before = edge.counter("sluice_sliced_cut").await;
    let mut client = Client::connect(edge.address()).await;
    match client.try_exchange(request("GET", KNOWN, &[])).await {
        Err(Failure::Truncated(response, _)) => {
            assert_eq!(response.status, 200);
            let start = body::part(KNOWN, 1, OBJECT, 0..2 * SLICE);
            assert!(response.body == start, "{} bytes", response.body.len());
        }
        Ok(response) => panic!("{response}"),
        Err(failure) => panic!("{failure}"),
    }
    edge.wait_for_counter("sluice_sliced_cut", before + 1).await;
    origin.listen().await;
    origin.on(KNOWN, object(1));
    eventually("the object", async || {
        let mut client = Client::connect(edge.address()).await;
        let whole = client.try_exchange(request("GET", KNOWN, &[])).await;
        whole.is_ok_and(|response| response.status == 200 && response.body.len() == OBJECT)
    })
    .await;
}
