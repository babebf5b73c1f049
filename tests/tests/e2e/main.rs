// SPDX-License-Identifier: Apache-2.0
//! The end-to-end tests, in the rooms of the filter, with a module for each behaviour. They are one binary, which links
//! once.
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
mod site;
mod store;
mod workers;
