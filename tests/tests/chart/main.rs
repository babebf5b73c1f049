// SPDX-License-Identifier: Apache-2.0
//! The chart, through Helm, on a real Kubernetes API server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod gateway;
mod observability;
mod package;
mod peers;
mod refusals;
mod release;
mod replicas;
mod rollout;
mod sets;
mod validity;
mod world;
