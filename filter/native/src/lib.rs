// SPDX-License-Identifier: Apache-2.0
//! The Sluice filter as a dynamic module of Envoy's: a shared object in Envoy's own process, in place of a Wasm module in
//! a VM. The roles are the same (`sluice_roles`); this crate is their host.
//!
//! All workers of the process share one copy of this module. Each worker thread has a [`native_worker`] with the roles' worker, and
//! nothing that belongs to one native_worker is ever used on another thread. What threads share is in [`process`].
//!
//! Where do I change ...
//!
//! - a call to Envoy, or how Envoy calls the module: `abi`, which has all `unsafe` code
//! - which of Envoy's hooks a role gets, and what a panic costs: `hooks`
//! - what the roles ask of their host: `host`
//! - what is done after a callback (replies, resumed streams): `native_worker` and `reply`
//! - queues and timers: `process`
//! - requests of the filter's own, and its turns: `carrier`
//! - what this module does beside a Wasm module: `aid`

pub mod abi;
mod aid;
mod carrier;
mod configuration;
mod hooks;
mod host;
mod metrics;
mod native_worker;
mod process;
mod reply;
mod stream;
#[cfg(feature = "trap")]
mod trap;

export_hooks!(hooks::Module);
