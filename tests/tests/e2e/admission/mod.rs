// SPDX-License-Identifier: Apache-2.0
//! The requests that the cache may serve, the requests that pass it, and the fields that the origin gets.

mod credentials;
mod http_origin;
mod request_body;
mod request_cache_control;
mod request_headers;
