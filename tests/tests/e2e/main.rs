// SPDX-License-Identifier: Apache-2.0
//! The end-to-end tests, one module per behaviour. One binary: it links once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod bucket_signing;
mod cache_status;
mod client_aborts;
mod coalescing_bounded_waiting;
mod coalescing_errors;
mod coalescing_leader_vanishes;
mod coalescing_stampede;
mod coalescing_uncacheable;
mod container_entry;
mod dead_vm;
mod demo_site;
mod documentation;
mod drain;
mod http_origin_pass;
mod key_escaping;
mod memory_bounds;
mod policy_update;
mod readiness;
mod request_headers;
mod restart_warm;
mod settings_errors;
mod tls;
mod vary;
