// SPDX-License-Identifier: Apache-2.0
//! Fills that go on beside a flight: ranges ahead of one, and fills that no client reads.

pub mod ahead;
pub mod unread;
