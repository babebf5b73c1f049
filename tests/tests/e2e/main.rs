// SPDX-License-Identifier: Apache-2.0
//! The end-to-end tests, in folders named after those of the filter, with a module for each behaviour. They are one
//! binary, which is linked once.
//!
//! A test's name is its claim, and the first line of its module is the claim of all its tests. A test that begins
//! with `control_` shows what happens without Sluice. If a control fails, the mechanism that it justifies may be
//! unnecessary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod admission;
mod coalescing;
mod freshness;
mod hot;
mod http;
mod key;
mod operations;
mod origin;
mod policy;
mod purge;
mod reports;
mod sites;
mod store;
mod website;
mod workers;
