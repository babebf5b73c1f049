// SPDX-License-Identifier: Apache-2.0
//! The Sluice filter as Envoy runs it: one module in two roles that share a VM on each worker.
//!
//! EDGE stands before Envoy's cache filter, ORIGIN behind it, in the cluster's upstream chain. What
//! they know of each other is in the VM's [`worker`]; what workers know of each other goes through
//! shared data and queues (`sluice_core::coalescing::board`). All decisions are made in `sluice_core`; this crate
//! translates callbacks into its events and its effects into host calls. A third role, FRONT, stands in
//! gateways before a fleet of such edges.

mod account;
mod adopted;
mod answer;
mod calls;
mod change;
mod clean;
mod cors;
mod delivery;
mod dress;
mod edge;
mod fills;
mod front;
mod headers;
mod host;
mod hot;
mod identity;
mod metrics;
mod origin;
mod purge;
mod response;
mod response_fields;
mod revalidation;
mod root;
mod site;
mod sns;
mod start;
mod stream;
#[cfg(feature = "trap")]
mod trap;
mod variants;
mod worker;
