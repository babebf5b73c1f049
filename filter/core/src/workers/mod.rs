// SPDX-License-Identifier: Apache-2.0
//! State that Envoy's workers share. Each worker has its own VM, so workers are connected only by shared data and
//! queues: values that are replaced by compare-and-swap ([`shared_value`], [`shared_table`], [`agreement`]), and
//! messages ([`message`]).

pub mod agreement;
pub mod byte_reader;
mod identity;
pub mod message;
mod number_map;
pub mod recent_keys;
mod roster;
pub mod shared_data;
pub mod shared_table;
pub mod shared_value;

pub use identity::{BodyId, FlightId, KeyHash, Millis, OwnHeaders, StreamId, WorkerId};
pub use number_map::NumberMap;
pub use roster::Roster;
