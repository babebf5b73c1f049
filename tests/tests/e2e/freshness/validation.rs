// SPDX-License-Identifier: Apache-2.0
//! A crowd that waits while the origin is asked whether the object at `/a` has changed.

use sluice_tests::client::crowd::{Crowd, Outcomes};
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;

/// Number of clients.
pub const CLIENTS: usize = 50;

/// An object of `bytes` bytes, whose tag stays the same when its `x-version` changes.
pub fn tagged(bytes: usize, version: &str) -> Reply {
    let reply = Reply::ok(bytes).etag("v1");
    reply.header("x-version", version)
}

/// Number of conditional requests that the origin got for the object.
pub fn conditional(origin: &Origin) -> usize {
    origin
        .requests()
        .matching(|request| request.headers.get("if-none-match") == Some("\"v1\""))
}

/// Checks that all clients wait for one validation, which the gate holds, and get the stored object.
pub async fn share(edge: &Edge, gate: &Gate) -> Outcomes {
    let crowd = Crowd::connect(edge.address(), CLIENTS).await.fire("/a");
    gate.wait_reached(1).await;
    edge.wait_for_value("sluice_parked_now", CLIENTS as u64 - 1)
        .await;
    gate.open();
    let crowd = crowd.land().await;
    crowd.same_object("/a");
    for response in crowd.all(200) {
        let status = response.header("cache-status");
        assert!(status.starts_with("sluice; fwd=stale; "), "{status}");
    }
    crowd
}
