// SPDX-License-Identifier: Apache-2.0
//! Envoy's HTTP cache filter as a store.

pub mod body_lengths;
pub mod confirmations;
pub mod entry;
pub mod hidden_fields;
pub mod link;
pub mod revalidation;
pub mod served;
pub mod served_for;
pub mod store_edits;
pub mod store_path;
pub mod stored_fields;
pub mod validator;
mod words;

pub use confirmations::{Confirmations, Probed};
