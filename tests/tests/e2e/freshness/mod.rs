// SPDX-License-Identifier: Apache-2.0
//! How long a stored response is served: lifetimes, revalidation, and what is served stale.

mod cache_status;
mod expiry;
mod lifetime;
mod no_cache;
mod origin_decides;
mod revalidation;
mod stale_if_error;
mod stale_while_revalidate;
mod validation;
