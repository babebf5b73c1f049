// SPDX-License-Identifier: Apache-2.0
//! What an entry of Envoy's cache holds beside the origin's response: the fields that ORIGIN adds when it stores a
//! response and that EDGE reads and removes when the response is served.

pub mod body_lengths;
pub mod entry;
pub mod header_edit;
pub mod hidden_fields;
pub mod revalidation;
pub mod served_for;
pub mod store_edits;
pub mod stored_fields;
pub mod validator;
mod words;
