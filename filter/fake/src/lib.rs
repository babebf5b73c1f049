// SPDX-License-Identifier: Apache-2.0
//! A host for tests: workers, what they share, a store and an origin, in one thread and without a clock.
//!
//! [`FakeHost`] plays what lies between a client and the origin. It calls the
//! [`Coalescer`](sluice_core::coalescing::Coalescer) of each worker as the filter does, and carries out the effects. What
//! takes time in the world (an answer of the origin, a message on its way, a timer) happens when the test says so, in any
//! order. It panics as soon as a rule is broken that holds in every interleaving; see [`FakeHost::check`].
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod host;
mod records;
mod shared_data;
mod store;

pub use host::FakeHost;
pub use records::*;
pub use shared_data::{Calls, FakeSharedData};
pub use store::FakeStore;
