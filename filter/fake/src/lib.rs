// SPDX-License-Identifier: Apache-2.0
//! A fake Envoy for native tests: workers, shared data, a cache and an origin, in one thread and without a clock.
//!
//! [`FakeEnvoy`] runs the filter's own roles. It does the work between a client and the origin as Envoy does it. It
//! calls the contexts of EDGE and ORIGIN, answers their host calls, and acts as the cache filter between them. Events
//! that take time in reality (an answer of the origin, a message on its way, a timer) happen when the test calls for
//! them, in any order. The fake panics as soon as a rule is broken that holds in every interleaving; see
//! [`FakeEnvoy::check`].
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod cache;
mod envoy;
mod exchange;
mod header_texts;
mod memory_store;
mod process;
mod records;
mod shared_data;
pub mod sites;
mod slicing;
mod vm;
mod worker_host;

pub use cache::FakeCache;
pub use envoy::FakeEnvoy;
pub use header_texts::HeaderTexts;
pub use memory_store::{MemoryObject, MemoryObjects, MemoryStore};
pub use records::*;
pub use shared_data::{Calls, FakeSharedData};
pub use sluice_host::header_map::HeaderMap;
