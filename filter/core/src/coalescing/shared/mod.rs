// SPDX-License-Identifier: Apache-2.0
//! The tables that all workers share: the flight of each key, and the claims to refresh a key.

pub mod board;
pub mod claims;
