// SPDX-License-Identifier: Apache-2.0
//! The end-to-end tests, with a module for each behaviour, named like the filter's modules. The tests are one binary,
//! which is linked once.
//!
//! A test's name is its claim. The first line of a module is the claim of all its tests. A test that begins with
//! `control_` shows what happens without Sluice: where such a test fails, the mechanism that it justifies may be
//! needless.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod access;
mod admission;
mod coalescing;
mod control;
mod failover;
mod freshness;
mod hot;
mod http;
mod key;
mod operations;
mod origin;
mod peers;
mod policy;
mod purge;
mod reports;
mod sites;
mod slices;
mod store;
mod website;
mod workers;
