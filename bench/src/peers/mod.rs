// SPDX-License-Identifier: Apache-2.0
//! Other projects' servers, each configured by a template in `bench/peers`.

pub mod conforming;
pub mod direct;
pub mod haproxy;
pub mod nginx;
mod peer;
pub mod varnish;

pub use peer::{Peer, missing, program};

/// How many workers each server has.
pub const WORKERS: usize = 2;
