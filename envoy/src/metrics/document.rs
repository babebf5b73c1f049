// SPDX-License-Identifier: Apache-2.0
//! The document at `/metrics`: the metrics of the entry point, of the filter and of Envoy.

use std::io;

use sluice_core::metrics::Family;

use super::cache_usage;
use super::edge_status::{self, EdgeStatus};
use super::exposition::Exposition;
use super::site_totals::{EdgeTotals, statistics_filter};
use super::translation::translate;
use crate::cache::{ReportDesk, Shares, Usage};
use crate::net::admin::Admin;

/// The sources of the document.
pub struct MetricsDocument {
    /// The client of Envoy's admin interface.
    pub admin: Admin,
    /// The build and the configuration.
    pub status: EdgeStatus,
    /// The place at which the keeper of the cache is asked for its usage.
    pub reports: ReportDesk,
    /// The bound of the cache.
    pub bound: Usage,
    /// Whether the metrics of named sites have the names as labels.
    pub by_site: bool,
    /// The shares of the sites of the cache.
    pub shares: Shares,
}

impl MetricsDocument {
    /// Makes the document.
    ///
    /// # Errors
    /// Envoy does not answer.
    pub fn render(&self) -> io::Result<String> {
        let text = self.admin.prometheus()?;
        let mut exposition = Exposition::default();
        self.status.expose(&mut exposition);
        let report = self.reports.ask();
        cache_usage::expose(&report, self.bound, self.by_site, &mut exposition);
        let of_envoy = translate(&text, &mut exposition);
        Ok(format!("{exposition}{of_envoy}"))
    }

    /// The totals of each site.
    ///
    /// # Errors
    /// Envoy does not answer.
    pub fn totals(&self) -> io::Result<EdgeTotals> {
        let text = self.admin.prometheus_of(&statistics_filter())?;
        let shares = self.shares.of_bytes(self.bound.bytes);
        let report = self.reports.ask();
        let (bound, by_site) = (self.bound, self.by_site);
        Ok(EdgeTotals::read(&text, &report, bound, &shares, by_site))
    }

    /// The totals of each site, as a JSON object.
    ///
    /// # Errors
    /// Envoy does not answer.
    pub fn totals_as_json(&self) -> io::Result<String> {
        Ok(serde_json::to_string(&self.totals()?)?)
    }

    /// Envoy's text.
    ///
    /// # Errors
    /// Envoy does not answer.
    pub fn raw(&self) -> io::Result<String> {
        self.admin.prometheus()
    }
}

/// The families of the entry point.
pub fn own_families() -> impl Iterator<Item = Family> {
    edge_status::FAMILIES
        .into_iter()
        .chain(cache_usage::FAMILIES)
}
