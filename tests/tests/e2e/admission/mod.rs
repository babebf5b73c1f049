// SPDX-License-Identifier: Apache-2.0
//! Which requests may meet the cache, which pass by it, and what of a request goes on to the origin.

mod credentials;
mod http_origin;
mod request_body;
mod request_cache_control;
mod request_headers;
