// SPDX-License-Identifier: Apache-2.0
//! The network of the entry point: HTTP to Envoy, to buckets and MinIO, and servers for the filter and the operator.

pub mod admin;
pub mod bucket_client;
pub mod ca_bundle;
pub mod http;
pub mod local_socket;
pub mod request_head;
pub mod unix_client;
