// SPDX-License-Identifier: Apache-2.0
//! The end-to-end tests, in the rooms of the filter, with a module for each behaviour. They are one binary, which links
//! once.
//!
//! A test's name is its claim, and its module's first line the claim of all tests there. A test that begins with
//! `control_` shows what happens without Sluice: where one fails, what it justifies may be needless.
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
