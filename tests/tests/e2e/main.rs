// SPDX-License-Identifier: Apache-2.0
//! The end-to-end tests, one module per behaviour. One binary: it links once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod access_log;
mod background;
mod background_fills;
mod bucket_signing;
mod cache_damage;
mod cache_status;
mod client_aborts;
mod coalescing_bounded_waiting;
mod coalescing_errors;
mod coalescing_leader_vanishes;
mod coalescing_stampede;
mod coalescing_uncacheable;
mod compression;
mod conditions;
mod conditions_cold;
mod credentials;
mod dead_vm;
mod demo_site;
mod disk_full;
mod drain;
mod envoy_cache_v2;
mod eviction;
mod expiry;
mod freshness;
mod heads;
mod health_check;
mod host_calls;
mod hot;
mod hot_or_stored;
mod http_origin_pass;
mod key_escaping;
mod memory_bounds;
mod observability;
mod origin_hop;
mod policy_update;
mod purge;
mod purge_fills;
mod purge_restart;
mod purge_s3;
mod purge_sns;
mod purge_soft;
mod ranges;
mod ranges_of_changes;
mod readiness;
mod request_cache_control;
mod request_headers;
mod restart_warm;
mod revalidation;
mod rules;
mod settings_errors;
mod site_content_types;
mod site_cors;
mod site_documents;
mod site_errors;
mod site_ready_made;
mod slow_readers;
mod slow_workers;
mod stale_if_error;
mod stale_while_revalidate;
mod tls;
mod torture;
mod unsafe_methods;
mod vary;
mod websocket;
