// SPDX-License-Identifier: Apache-2.0
//! What Envoy's workers share. Each worker has a VM of its own, so shared data and queues are all that connects them:
//! values that are replaced by compare-and-swap ([`shared_value`]), and messages.

mod identity;
pub mod message;
mod news;
pub mod recent_keys;
mod roster;
pub mod shared_value;

pub use identity::{BodyId, FlightId, KeyHash, Millis, StreamId, WorkerId};
pub use news::News;
pub use roster::Roster;
