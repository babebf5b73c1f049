// SPDX-License-Identifier: Apache-2.0
//! The Sluice filter as a dynamic module of Envoy: a shared object in Envoy's own process, instead of a Wasm module
//! in a VM. The roles are the same (`sluice_roles`); this crate is their host.
//!
//! All workers of the process share one copy of this module. Each worker thread has a [`native_worker`] with the
//! roles' worker, and uses only its own one. State that threads share is in [`process`].
//!
//! Where do I change ...
//!
//! - a call to Envoy, or a call of Envoy's to the module: `abi`, which has all `unsafe` code
//! - the hooks of Envoy that a role gets, and the effect of a panic: `hooks`
//! - the calls of the roles to their host: `host`
//! - the tasks after a callback (replies, resumed streams): `native_worker` and `reply`
//! - queues and timers: `process`
//! - the filter's own requests, and its turns: `carrier`
//! - the functions that a Wasm module does not have: `aid`, and `slicer` for objects that are stored in slices

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
mod slicer;
mod stream;
#[cfg(feature = "trap")]
mod trap;

export_hooks!(hooks::Module);
