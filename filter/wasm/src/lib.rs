// SPDX-License-Identifier: Apache-2.0
//! The Sluice filter as a proxy-wasm module: Envoy's calls and callbacks for the roles, which are in `sluice_roles`.
//!
//! Where do I change ...
//!
//! - what is exported, and when the module starts: `start`
//! - which of Envoy's callbacks a role gets: `contexts`
//! - who has the worker, and what happens when a callback asks for it in vain: `worker`
//! - a call to Envoy: `host`, by the functions in `imports`

mod contexts;
mod host;
mod imports;
mod start;
#[cfg(feature = "trap")]
mod trap;
mod worker;
