// SPDX-License-Identifier: Apache-2.0
//! The pure part of Sluice: no host call, no clock, no I/O.

mod authority;
pub mod board;
mod cache_control;
pub mod cache_status;
pub mod coalescer;
pub mod duration;
pub mod entry;
pub mod escaping;
pub mod flight;
pub mod freshness;
pub mod hints;
pub mod host;
pub mod http_date;
pub mod key;
pub mod link;
pub mod message;
pub mod metrics;
pub mod policy;
mod query;
mod rejection;
pub mod request;
#[cfg(feature = "testing")]
pub mod testing;
