// SPDX-License-Identifier: Apache-2.0
//! What the Sluice filter does: several roles that share a VM on each worker thread of Envoy.
//!
//! EDGE stands before Envoy's cache filter, ORIGIN behind it, in the cluster's upstream chain. What they know of
//! each other is in the VM's [`worker`]; what workers know of each other goes through shared data and queues.
//! Decisions are made in `sluice_core`; this crate translates the [`callbacks`] of a [`host`] into its events, and its
//! effects into calls of that host. The shipped module's host is Envoy (`sluice-filter`), that of native tests a fake
//! one (`sluice-fake`).
//!
//! Where do I change ...
//!
//! - how a client's request is read, keyed and admitted: `edge/request`; its headers: `edge/request_headers`
//! - what a client sees of a response: `edge/response`, and `edge/{client_headers,cors,variants,website}` for its parts
//! - what is copied for the hot tier, and answered out of it: `edge/hot`
//! - what an unsafe method invalidates: `edge/invalidation`
//! - what the origin is asked: `origin/request` and `origin/variance`
//! - what the store gets: `origin/response` and `origin/judged`, with the edits of `sluice_store::store_edits`; what
//!   the followers are told of it: `origin/outcome`
//! - the answer to a range or a condition, and every answer that the filter makes itself: `reply`
//! - what keeps a response from the store whose request has gone around it: `around`
//! - what is known of a request on its way, and what the access log says of it: `request`
//! - how a request waits and goes on: `worker/waking`
//! - which ranges do not wait for the fill of their object: `worker/own_requests/ahead`; what becomes of their responses: `edge/ahead`
//! - requests of the filter's own: `worker/own_requests`; EDGE's part: `edge/background_*`
//! - what workers learn of a URL that varies, and who gets another variant than the store's: `worker/own_requests/variants`
//! - what a worker knows of keys: their hashes, purges, variants, the hot tier: `worker/keys`
//! - purges: `purge_listener` (and `sns`) takes the call, `worker/purges/purge_calls` carries it out
//! - the timer, the queue, the configuration: `worker/root`, `worker/roots`, `root`
//!
//! Each of these uses those that follow: `root`; `edge`, `origin`, `front` and `purge_listener`; `callbacks`; `worker`;
//! `reply`; `around`; `request`; `host`.

pub mod callbacks;
#[cfg(feature = "conformance")]
mod conforming;
mod edge;
mod front;
mod origin;
mod purge_listener;
mod reply;
mod request;
pub mod root;
mod sns;
pub mod worker;
