// SPDX-License-Identifier: Apache-2.0
//! The grammar and semantics of HTTP (RFC 9110, 9111, 9211, 9213, RFC 3986 for URLs): what a field says and what
//! follows from it. Nothing here knows of Sluice's policy.

pub mod accept_encoding;
pub(crate) mod authority;
pub mod cache_control;
pub mod cache_name;
pub mod cache_status;
pub mod client_control;
pub mod conditions;
pub mod connection;
pub mod date;
pub mod demand;
pub mod entity_tag;
pub mod escaping;
pub mod field_value;
pub mod header_bound;
pub mod range;
pub mod rejection;
pub mod repetition;
pub mod status;
pub(crate) mod structured_field;
pub(crate) mod targeted;
pub mod uri_reference;
pub mod whitespace;
