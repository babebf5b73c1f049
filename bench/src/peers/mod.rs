// SPDX-License-Identifier: Apache-2.0
//! Other projects' servers, each configured by a template in `bench/peers`.

pub mod conforming;
pub mod direct;
pub mod haproxy;
pub mod nginx;
pub mod packages;
mod peer;
mod recipe;
pub mod trafficserver;
pub mod varnish;

pub use peer::Peer;
pub use recipe::Recipe;

/// How many workers each server has.
pub const WORKERS: usize = 2;
