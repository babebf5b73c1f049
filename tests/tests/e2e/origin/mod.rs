// SPDX-License-Identifier: Apache-2.0
//! The way from the cache to the origin: the hop, signed requests, upgraded connections, and the listener for the
//! filter's own requests.

mod background_listener;
mod bucket_signing;
mod bucket_trouble;
pub mod hop;
mod s3_servers;
pub mod websocket;
