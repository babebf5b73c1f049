// SPDX-License-Identifier: Apache-2.0
//! A response as the store has it: the entry beside it, the fields that are kept for it, and how a response comes there.

pub mod body_lengths;
pub mod entry;
pub mod hidden_fields;
pub mod revalidation;
pub mod served_for;
pub mod store_edits;
pub mod stored_fields;
pub mod validator;
mod words;
