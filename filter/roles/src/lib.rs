// SPDX-License-Identifier: Apache-2.0
//! The roles of the Sluice filter, which share a VM on each worker thread of Envoy.
//!
//! EDGE is in front of Envoy's cache filter, and ORIGIN is behind it, in the cluster's upstream chain. Both use the
//! VM's [`worker`], through which each knows the other's requests. Workers communicate through shared data and
//! queues. `sluice_core` makes the decisions. This crate translates the [`callbacks`] of a host into events of
//! `sluice_core`, and the effects into calls of that host. The host of the shipped module is Envoy (`sluice-filter`);
//! native tests use a fake one (`sluice-fake`).
//!
//! Where to change ...
//!
//! - how a client's request is read, keyed and admitted: `edge/request`; its headers: `edge/request/headers`
//! - the response that a client sees: `edge/response`, with its `client_headers` and `variants`; `edge/cors`,
//!   `edge/website`
//! - requests of other edges, which are one cache with this one: `edge/peer`, and `front` at the edge that sends them
//! - the copies of the hot tier, and the answers from it: `edge/hot`
//! - the invalidation by unsafe methods: `edge/invalidation`
//! - the request to the origin: `origin/request` and `origin/variance`
//! - the response that is stored: `origin/response` and `origin/judged`, with the edits of `sluice_store::store_edits`;
//!   the outcome for its followers: `origin/outcome`
//! - the answer to a range or a condition, and every answer that the filter makes itself: `reply`
//! - the mark that keeps a response from the store if its request bypassed the store: `sluice_store::around`
//! - the record of a request on its way, and its facts for the access log: `request`
//! - the open requests, the events of their flights, and due replies: `worker/coalescing`; how a request continues:
//!   `worker/waking`
//! - requests of the filter: `worker/own_requests`; their handling in EDGE: `edge/request/own_request` and
//!   `edge/response/own_response`
//! - URLs that vary, and requests that get another variant than the stored one: `worker/own_requests/variants`
//! - the facts that a worker knows of keys (hashes, purges, variants, the hot tier): `worker/keys`
//! - purges: `purge_listener` (and `sns`) admits the call, `purge_audit` names it in the log, `worker/purges/purge_calls` carries it out
//! - the record of a client's request for questions about the last requests: `edge/record`
//! - questions of the edge's operator: `control` takes and answers them, `worker/questions` carries them between workers
//! - the metrics: `worker/metrics`; the gauges after the death of a VM: `worker/succession`; the time to the first
//!   byte: `edge/first_byte`
//! - the timer, the queue, the configuration: `worker/root`, `worker/roots`, `root`
//!
//! Each module uses only the ones that follow it: `root`; `front`; `edge`, `origin` and `control`; `purge_listener`; `callbacks`;
//! `worker`; `reply`; `request`.

pub mod callbacks;
#[cfg(feature = "conformance")]
mod conforming;
mod control;
mod edge;
mod entry_point;
mod front;
mod origin;
mod purge_audit;
mod purge_listener;
mod reply;
mod request;
pub mod root;
mod sns;
pub mod worker;
