// SPDX-License-Identifier: Apache-2.0
//! State that Envoy's workers share. Each worker has its own VM, so workers are connected only by shared data and
//! queues: values that are replaced by compare-and-swap ([`shared_value`], [`shared_table`], [`agreement`]), and
//! messages ([`message`]).

pub mod agreement;
pub mod byte_reader;
pub mod gauge_shares;
mod identity;
pub mod message;
pub mod recent_keys;
mod roster;
pub mod shared_data;
pub mod shared_table;
pub mod shared_value;

pub use identity::{BodyId, FlightId, KeyHash, Millis, OwnHeaders, StreamId, WorkerId, millis};

/// Map by a number that the filter counts itself, or by a [`KeyHash`], which depends on a secret. A client cannot make
/// many of its keys collide. So the map needs no hash as strong as the standard library's.
pub type NumberMap<K, V> = rustc_hash::FxHashMap<K, V>;
pub use roster::Roster;
