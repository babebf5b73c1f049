// SPDX-License-Identifier: Apache-2.0
//! The network as the entry point uses it: HTTP to Envoy and MinIO, and sockets on which the filter calls.

pub mod admin;
pub mod ca_bundle;
pub mod http;
pub mod local_socket;
