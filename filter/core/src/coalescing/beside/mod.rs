// SPDX-License-Identifier: Apache-2.0
//! Fills beside a flight: fills that no client reads.

pub mod unread;
