// SPDX-License-Identifier: Apache-2.0
//! Requests and responses of public bug reports of other caches, proxies and gateways. The edge has none of the
//! reported faults. `bench/REPORTS.md` lists the reports.

mod around_the_store;
mod bucket_sites;
mod closed_connections;
mod early_answers;
mod frameworks;
mod header_bytes;
mod http2_streams;
mod kubernetes;
mod loops;
mod not_modified;
mod not_stored;
mod other_protocols;
mod own_headers;
mod request_headers;
mod response_headers;
mod schemes;
mod validations;
