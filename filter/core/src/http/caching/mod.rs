// SPDX-License-Identifier: Apache-2.0
//! The fields that direct caches, and the fields in which caches report (RFC 9111, 9211, 9213; CDN-Loop of RFC 8586).

pub mod cache_control;
pub mod cache_name;
pub mod cache_status;
pub mod client_control;
pub mod private_response;
pub(crate) mod targeted;
