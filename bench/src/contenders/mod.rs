// SPDX-License-Identifier: Apache-2.0
//! The servers that are measured.

pub mod cache;
pub mod contender;
pub mod server;
