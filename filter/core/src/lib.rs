// SPDX-License-Identifier: Apache-2.0
//! The pure part of Sluice: no host call, no clock, no I/O.

pub mod accept_encoding;
mod authority;
pub mod board;
mod cache_control;
pub mod cache_status;
pub mod changes;
pub mod claims;
pub mod coalescer;
pub mod compression;
pub mod conditions;
pub mod cors;
pub mod demand;
mod dictionary;
pub mod duration;
pub mod entity_tag;
pub mod entry;
pub mod error_page;
pub mod escaping;
pub mod flight;
pub mod freshness;
pub mod generations;
pub mod glob;
pub mod glob_set;
pub mod hints;
pub mod host;
pub mod http_date;
pub mod key;
pub mod link;
pub mod media_type;
pub mod message;
pub mod metrics;
pub mod policy;
pub mod purge;
pub mod qualifiers;
mod query;
pub mod range;
mod rejection;
pub mod request;
pub mod request_control;
pub mod site;
mod targeted;
#[cfg(feature = "testing")]
pub mod testing;
pub mod validator;
pub mod vary;
pub mod varying;
