// SPDX-License-Identifier: Apache-2.0
//! Access: whether the client of a request may read the site.
//!
//! | what | where |
//! |---|---|
//! | the decision about a request | [`decision`] |
//! | the facts that a signature covers | [`grant`] |
//! | the keys of signatures | [`signing_key`], [`sealed_key`] |
//! | the signatures in a request, and the request without them | [`credentials`], [`parameters`] |
//!
//! A later scheme that another filter of Envoy checks becomes one more [`crate::policy::AccessScheme`]: the decision
//! then looks for the mark of that filter.

pub mod credentials;
pub mod decision;
pub mod grant;
pub mod parameters;
pub mod sealed_key;
pub mod signing_key;
