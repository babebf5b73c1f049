// SPDX-License-Identifier: Apache-2.0
//! HTTP/1.1 messages, and bodies that can be checked.

pub mod body;
pub mod message;
