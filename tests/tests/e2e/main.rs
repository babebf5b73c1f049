// SPDX-License-Identifier: Apache-2.0
//! The end-to-end tests, one module per behaviour. One binary: it links once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod client_aborts;
mod coalescing_bounded_waiting;
mod coalescing_errors;
mod coalescing_leader_vanishes;
mod coalescing_stampede;
mod coalescing_uncacheable;
