// SPDX-License-Identifier: Apache-2.0
//! The grammar and semantics of HTTP (RFC 9110, 9111, 9211, 9213, RFC 3986 for URLs): the meaning of each field. This
//! module does not depend on Sluice's policy.

pub mod accept_encoding;
pub mod caching;
pub mod conditional;
pub mod connection;
pub mod header_bound;
pub mod repetition;
pub mod status;
pub mod syntax;
pub mod url;
