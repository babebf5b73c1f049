// SPDX-License-Identifier: Apache-2.0
//! The logic of Sluice: no host call, no clock, no I/O. Its modules, in the order in which a request uses them:
//!
//! | to change | look in |
//! |---|---|
//! | the fields of the policy, their defaults and errors | [`policy`] |
//! | the choice of the site for a request | [`sites`] |
//! | the clients that may read a site | [`access`] |
//! | the meaning of HTTP's fields | [`http`] |
//! | cache keys, and the URLs that are refused | [`key`] |
//! | the choice of requests that use the cache | [`admission`] |
//! | leaders and followers | [`coalescing`] |
//! | objects that are too large to be stored as a whole | [`slices`] |
//! | the hot tier in memory | [`hot`] |
//! | the choice of responses that are stored, and their time to live | [`freshness`] |
//! | purged responses that are still stored | [`purge`] |
//! | web sites: substitutes for missing objects, CORS | [`website`] |
//! | the meaning of a bucket's errors | [`bucket_error`] |
//! | the failures of an origin | [`origin_failure`] |
//! | messages and agreement between workers | [`workers`] |
//! | questions of an operator to all workers, and the recordings that answer them | [`inspection`] |
//! | an amount that may be used within a minute | [`minute_budget`] |
//! | the text form of sizes and switches | [`size`], [`switch`] |
//! | the names of the filter's own headers | [`internal_headers`] |
//! | metrics | [`metrics`] |
//! | the host functions that the logic needs | [`host`] |

pub mod access;
pub mod admission;
pub mod bucket_error;
pub mod coalescing;
pub mod freshness;
pub mod hexadecimal;
pub mod host;
pub mod hot;
pub mod http;
pub mod inspection;
pub mod internal_headers;
pub mod key;
pub mod metrics;
pub mod minute_budget;
pub mod origin_failure;
pub mod policy;
pub mod purge;
pub mod second_origin;
pub mod sites;
pub mod size;
pub mod slices;
pub mod switch;
pub mod website;
pub mod workers;
