// SPDX-License-Identifier: Apache-2.0
//! HTTP/1.1 messages, and bodies that can be checked.

pub mod body;
pub mod message;

/// The date in the form of RFC 9110, section 5.6.7.
pub use httpdate::fmt_http_date as http_date;
