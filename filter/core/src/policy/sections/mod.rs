// SPDX-License-Identifier: Apache-2.0
//! The sections of a document. Each is the struct that it is read as.

pub(in crate::policy) mod cache;
pub(in crate::policy) mod compression;
pub(in crate::policy) mod connection_headers;
pub mod glob_set;
pub(in crate::policy) mod key;
pub mod known_headers;
pub mod listing;
pub(in crate::policy) mod origin;
pub(in crate::policy) mod redirects;
pub(in crate::policy) mod request;
pub(in crate::policy) mod response;
pub(in crate::policy) mod rules;
pub(in crate::policy) mod set_headers;
pub(in crate::policy) mod slices;
pub(in crate::policy) mod ttl;
pub(in crate::policy) mod ttl_bounds;
pub(in crate::policy) mod website;
