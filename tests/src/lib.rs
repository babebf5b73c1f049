// SPDX-License-Identifier: Apache-2.0
//! The harness of the end-to-end tests: real Envoy through Sluice's entry point, real MinIO, a scriptable origin, and
//! clients that may misbehave.
//!
//! From the ground up: [`chance`], [`machine`], [`http`] and [`server`]; [`client`], [`origin`], [`bucket`] and
//! [`image`]; the [`edge`] between them, and [`bare`] Envoy to compare it with; [`sns`], [`prometheus`] and
//! [`conformance`] beside it; [`chart`], [`mesh`], [`kubernetes`] and [`torture`] on top of all these.
//!
//! The harness does not sleep for a fixed time: a test waits for a condition, and [`PATIENCE`] only bounds how long a
//! broken edge can delay the tests.
// The harness is test code: a broken expectation is a failed test, and the panic says which.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

pub mod bare;
pub mod bucket;
pub mod chance;
pub mod chart;
pub mod client;
pub mod conformance;
pub mod edge;
pub mod h2spec;
pub mod http;
pub mod http3;
pub mod image;
pub mod kubernetes;
pub mod machine;
pub mod mesh;
pub mod origin;
pub mod prometheus;
pub mod server;
pub mod sns;
pub mod token_issuer;
pub mod torture;

use std::time::Duration;

/// How long a test waits for a condition: longer than a machine stands still while it writes much to a slow disk.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Polls `probe` until it is true, for conditions without an event (counters, files, processes).
///
/// # Panics
/// When the condition has not come true within [`PATIENCE`].
pub async fn eventually(what: &str, mut probe: impl AsyncFnMut() -> bool) {
    let met = tokio::time::timeout(PATIENCE, async {
        while !probe().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(met.await.is_ok(), "{what}: not within {PATIENCE:?}");
}
