// SPDX-License-Identifier: Apache-2.0
//! The logic of Sluice: no host call, no clock, no I/O. The folders, in the order in which a request meets them:
//!
//! | to change | look in |
//! |---|---|
//! | what a policy may say, its defaults, its errors | [`policy`] |
//! | which site a request is for | [`sites`] |
//! | what a field of HTTP means | [`http`] |
//! | how a URL becomes a cache key, and which are refused | [`key`] |
//! | which requests go through the cache | [`admission`] |
//! | which requests wait for which | [`coalescing`] |
//! | what is served from memory | [`hot`] |
//! | which responses are stored, and for how long | [`freshness`] |
//! | what is gone although it is stored | [`purge`] |
//! | web sites: documents in the place of missing objects, CORS | [`website`] |
//! | what the errors of a bucket mean | [`bucket_error`] |
//! | what has kept an origin from answering | [`origin_failure`] |
//! | how workers know and tell each other | [`workers`] |
//! | how sizes are written | [`size`] |
//! | which headers are the filter's own | [`internal_headers`] |
//! | what is counted | [`metrics`] |
//! | what the logic needs of its host | [`host`] |

pub mod admission;
pub mod bucket_error;
pub mod coalescing;
pub mod freshness;
pub mod hexadecimal;
pub mod host;
pub mod hot;
pub mod http;
pub mod internal_headers;
pub mod key;
pub mod metrics;
pub mod origin_failure;
pub mod policy;
pub mod purge;
pub mod sites;
pub mod size;
pub mod website;
pub mod workers;
