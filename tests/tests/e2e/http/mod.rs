// SPDX-License-Identifier: Apache-2.0
//! Conditions, ranges and HEADs: the response to one request, made from a stored response (RFC 9110, sections 9.3.2,
//! 13 and 14).

mod conditions;
mod conditions_cold;
mod conformance;
mod h2spec;
mod heads;
mod ranges;
mod ranges_of_changes;
