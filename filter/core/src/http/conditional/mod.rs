// SPDX-License-Identifier: Apache-2.0
//! Requests for a part of a response, or for one that has changed (RFC 9110, 13 and 14).

pub mod conditions;
pub mod demand;
pub mod entity_tag;
pub mod range;
