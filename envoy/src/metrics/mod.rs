// SPDX-License-Identifier: Apache-2.0
//! The metrics of the edge for Prometheus, on `SLUICE_METRICS_PORT`.
//!
//! - `listener`: the HTTP server, which no worker of Envoy takes part in
//! - `document`: the document at `/metrics`
//! - `translation`: Envoy's names of the filter's metrics, and the families of Prometheus
//! - `exposition`: the text format of Prometheus
//! - `sample`, `distribution`: the reading of that format
//! - `edge_status`: the build, the configuration and the last reload
//! - `cache_usage`: the cache, by site
//! - `site_totals`: the totals of each site, for rates
//! - `page`: the page of the sites for a browser

mod cache_usage;
mod distribution;
mod document;
mod edge_status;
mod exposition;
mod listener;
mod page;
mod sample;
mod site_totals;
mod translation;

pub use distribution::{Distribution, ORIGIN_FIRST_BYTE};
pub use document::{MetricsDocument, own_families};
pub use edge_status::{EdgeState, EdgeStatus, LastReload};
pub use exposition::epoch_millis;
pub use listener::serve;
pub use sample::Sample;
pub use site_totals::{EdgeTotals, SiteTotals};
