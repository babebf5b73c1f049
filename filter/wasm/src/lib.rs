// SPDX-License-Identifier: Apache-2.0
//! The Sluice filter as Envoy runs it: one module in two roles that share a VM on each worker.
//!
//! EDGE stands before Envoy's cache filter, ORIGIN behind it, in the cluster's upstream chain. What
//! they know of each other is in the VM's [`worker`]; what workers know of each other goes through
//! shared data and queues (`sluice_core::board`). All decisions are made in `sluice_core`; this crate
//! translates callbacks into its events and its effects into host calls. A third role, FRONT, stands in
//! gateways before a fleet of such edges.

mod edge;
mod front;
mod host;
mod origin;
mod purge_listener;
mod reply;
mod request;
mod root;
mod sns;
mod start;
#[cfg(feature = "trap")]
mod trap;
mod worker;
