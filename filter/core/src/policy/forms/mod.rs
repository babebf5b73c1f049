// SPDX-License-Identifier: Apache-2.0
//! The forms of a document's values: how each is read, the expected values, and the errors.

pub mod duration;
pub(in crate::policy) mod error;
pub(in crate::policy) mod form;
pub mod glob;
pub(in crate::policy) mod large_url;
pub(in crate::policy) mod names;
pub(in crate::policy) mod section;
pub(in crate::policy) mod website_names;
