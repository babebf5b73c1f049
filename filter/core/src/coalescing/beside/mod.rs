// SPDX-License-Identifier: Apache-2.0
//! Fills beside a flight: ranges far ahead of its fill, and fills that no client reads.

pub mod ahead;
pub mod unread;
