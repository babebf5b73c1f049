// SPDX-License-Identifier: Apache-2.0
//! The tables that all workers share: the flights of each key, and the claims to refresh one.

pub mod board;
pub mod claims;
