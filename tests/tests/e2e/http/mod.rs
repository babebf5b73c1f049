// SPDX-License-Identifier: Apache-2.0
//! Conditions, ranges and HEADs: what is made of a stored response for one request (RFC 9110, sections 9.3.2, 13 and
//! 14).

mod conditions;
mod conditions_cold;
mod conformance;
mod h2spec;
mod heads;
mod ranges;
mod ranges_ahead;
mod ranges_of_changes;
