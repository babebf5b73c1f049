// SPDX-License-Identifier: Apache-2.0
//! The former host, which restates what the roles do. It goes when its last test has moved.

mod host;
mod records;
mod store;

pub use host::FakeHost;
pub use records::*;
pub use store::FakeStore;
