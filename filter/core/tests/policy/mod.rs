// SPDX-License-Identifier: Apache-2.0
//! The policy, and its documents.

mod document;
mod rules;
mod set_headers;
mod website;
