// SPDX-License-Identifier: Apache-2.0
//! A response in the store: the entry beside it, the fields that are kept for it, and the edits for the store.

pub mod body_lengths;
pub mod entry;
pub mod hidden_fields;
pub mod revalidation;
pub mod served_for;
pub mod store_edits;
pub mod stored_fields;
pub mod validator;
mod words;
