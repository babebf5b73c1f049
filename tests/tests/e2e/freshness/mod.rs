// SPDX-License-Identifier: Apache-2.0
//! The time for which a stored response is served: lifetimes, revalidation, and stale responses.

mod cache_status;
mod expiry;
mod lifetime;
mod no_cache;
mod origin_decides;
mod revalidation;
mod stale_if_error;
mod stale_while_revalidate;
mod validation;
