// SPDX-License-Identifier: Apache-2.0
//! The manifests of `mesh/`, on a real Kubernetes API server and a real istiod, served by real agents and Envoys.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod authorization;
mod canary;
mod dead_vm;
mod drain;
mod fleet;
mod gateway;
mod hot;
mod image;
mod ip_families;
mod istio_proxy;
mod manifests;
mod metrics;
mod pod_security;
mod purges;
mod revisions;
mod rolling;
mod routes;
mod sidecar;
mod signatures;
mod sizing;
mod store;
mod updates;
