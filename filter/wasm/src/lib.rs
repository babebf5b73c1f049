// SPDX-License-Identifier: Apache-2.0
//! The Sluice filter as a proxy-wasm module: Envoy's calls and callbacks for the roles, which are in `sluice_roles`.
//!
//! Where do I change ...
//!
//! - the exports, and the start of the module: `start`
//! - the callbacks of Envoy that a role gets: `contexts`
//! - the owner of the worker, and a callback that finds it in use: `worker`
//! - a call to Envoy: `host`, through the functions in `imports`

mod contexts;
mod host;
mod imports;
mod start;
#[cfg(feature = "trap")]
mod trap;
mod worker;
