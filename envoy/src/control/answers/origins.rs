// SPDX-License-Identifier: Apache-2.0
//! The origins of the sites: their counts, their times and their last errors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::control::filter::WorkerAnswers;
use crate::metrics::{Distribution, ORIGIN_FIRST_BYTE, Sample};

/// The last error of an origin.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct OriginError {
    /// The time, in milliseconds since the epoch.
    pub at_ms: u64,
    /// The status.
    pub status: u16,
    /// The bucket's code, such as `SlowDown`.
    pub code: Option<String>,
    /// The bucket's identifier of the request.
    pub request_id: Option<String>,
    /// The path of the request.
    pub path: String,
}

/// The last error that one worker knows of a site's origin.
#[derive(Clone, Debug, Deserialize)]
pub struct WorkerOrigin {
    site: String,
    last_error: Option<OriginError>,
}

/// The origins that one worker knows.
#[derive(Clone, Debug, Deserialize)]
pub struct WorkerOrigins {
    origins: Vec<WorkerOrigin>,
}

/// The origin of a site, with its counts since the start of the edge.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Origin {
    /// The site; empty for an edge with one site.
    pub site: String,
    /// Requests.
    pub requests: f64,
    /// Repeated requests.
    pub retries: f64,
    /// Connections that could not be made.
    pub connect_failures: f64,
    /// Open connections.
    pub connections: f64,
    /// Responses that were not stored because they were errors (5xx).
    pub server_errors: f64,
    /// Errors of the bucket, by their reason.
    pub bucket_errors: BTreeMap<String, f64>,
    /// The times to the first byte, in seconds.
    pub first_byte: Distribution,
    /// The median of these times; `None` without requests.
    pub first_byte_p50: Option<f64>,
    /// The time that 99 % of them do not exceed.
    pub first_byte_p99: Option<f64>,
    /// The newest error.
    pub last_error: Option<OriginError>,
}

impl Origin {
    fn add(&mut self, sample: &Sample<'_>) {
        let value = sample.value;
        self.first_byte.add(sample, ORIGIN_FIRST_BYTE);
        // The names have a second underscore where Envoy has taken the site out of the cluster's name.
        match sample.name.replace("__", "_").as_str() {
            "sluice_origin_requests_total" => self.requests += value,
            "sluice_not_stored_total" if sample.label("reason") == "server-error" => {
                self.server_errors += value;
            }
            "sluice_bucket_errors_total" if value > 0.0 => {
                let reason = sample.label("reason").to_owned();
                *self.bucket_errors.entry(reason).or_default() += value;
            }
            "envoy_cluster_upstream_rq_retry" => self.retries += value,
            "envoy_cluster_upstream_cx_connect_fail" => self.connect_failures += value,
            "envoy_cluster_upstream_cx_active" => self.connections += value,
            _ => {}
        }
    }
}

/// The origins of all sites.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Origins {
    /// The origins, by the names of their sites.
    pub origins: Vec<Origin>,
    /// The reason for which the filter has not answered, so that the last errors are missing.
    pub problem: Option<String>,
    /// The numbers of the workers that have not answered.
    pub silent: Vec<u32>,
}

impl Origins {
    /// Joins the counts in `document`, that of the metrics, and the errors that the workers know. `Err`: the filter has
    /// not answered, for this reason.
    pub fn join(document: &str, answers: Result<WorkerAnswers<WorkerOrigins>, String>) -> Self {
        let mut origins: BTreeMap<String, Origin> = BTreeMap::new();
        for sample in document.lines().filter_map(Sample::read) {
            if sample.name.starts_with("sluice_")
                || sample.label("envoy_cluster_name") == "origin_server"
            {
                let site = sample.label("site").to_owned();
                origins.entry(site).or_default().add(&sample);
            }
        }
        // With named sites, the samples without a name count the requests for none of them.
        if origins.len() > 1 {
            origins.remove("");
        }
        let (answers, problem) = match answers {
            Ok(answers) => (Some(answers), None),
            Err(reason) => (None, Some(reason)),
        };
        let silent = answers.as_ref().map(|answers| answers.silent.clone());
        let workers = answers.into_iter().flat_map(|answers| answers.workers);
        for part in workers.flat_map(|worker| worker.answer.origins) {
            if let (Some(origin), Some(error)) = (origins.get_mut(&part.site), part.last_error) {
                origin.note(error);
            }
        }
        let origins = origins.into_iter();
        let origins = origins.map(|(site, origin)| Origin {
            site,
            first_byte_p50: origin.first_byte.quantile(0.5),
            first_byte_p99: origin.first_byte.quantile(0.99),
            ..origin
        });
        Self {
            origins: origins.collect(),
            problem,
            silent: silent.unwrap_or_default(),
        }
    }
}

impl Origin {
    fn note(&mut self, error: OriginError) {
        let newest = self.last_error.as_ref();
        if newest.is_none_or(|known| known.at_ms < error.at_ms) {
            self.last_error = Some(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DOCUMENT: &str = "# TYPE sluice_origin_requests_total counter
sluice_cache_limit_bytes 1000
sluice_origin_requests_total{site=\"shop\"} 3
sluice_not_stored_total{reason=\"server-error\",site=\"shop\"} 2
sluice_not_stored_total{reason=\"private\",site=\"shop\"} 5
sluice_bucket_errors_total{reason=\"throttled\",site=\"shop\"} 4
sluice_bucket_errors_total{reason=\"failed\",site=\"shop\"} 0
sluice_origin_first_byte_seconds_bucket{site=\"shop\",le=\"0.5\"} 3
sluice_origin_first_byte_seconds_bucket{site=\"shop\",le=\"+Inf\"} 3
sluice_origin_first_byte_seconds_count{site=\"shop\"} 3
envoy_cluster__upstream_rq_retry{site=\"shop\",envoy_cluster_name=\"origin_server\"} 6
envoy_cluster__upstream_rq_retry{site=\"shop\",envoy_cluster_name=\"other\"} 60
";

    #[test]
    fn the_counts_of_the_metrics_are_read_by_site() {
        let joined = Origins::join(DOCUMENT, Err("no answer".to_owned()));
        assert_eq!(joined.problem.as_deref(), Some("no answer"));
        let [shop] = joined.origins.as_slice() else {
            panic!("{joined:?}");
        };
        assert_eq!(
            (shop.site.as_str(), shop.requests, shop.retries),
            ("shop", 3.0, 6.0)
        );
        let throttled = BTreeMap::from([("throttled".to_owned(), 4.0)]);
        assert_eq!((shop.server_errors, &shop.bucket_errors), (2.0, &throttled));
        assert_eq!(shop.first_byte_p50, Some(0.25));
    }

    #[test]
    fn the_newest_error_of_all_workers_is_beside_the_counts() {
        let error = |at_ms: u64, code: &str| {
            json!({"origins": [{"site": "shop", "last_error": {"at_ms": at_ms, "status": 503,
                "code": code, "request_id": "4F", "path": "/a"}}], "worker": at_ms})
        };
        let answers =
            json!({"workers": [error(7, "SlowDown"), error(3, "InternalError")], "silent": [2]});
        let joined = Origins::join(DOCUMENT, Ok(serde_json::from_value(answers).unwrap()));
        let code = joined.origins[0]
            .last_error
            .as_ref()
            .and_then(|error| error.code.as_deref());
        assert_eq!(
            (code, joined.silent.as_slice()),
            (Some("SlowDown"), &[2][..])
        );
    }

    #[test]
    fn an_edge_with_one_site_has_an_origin_without_a_name() {
        let joined = Origins::join("sluice_origin_requests_total 2\n", Err(String::new()));
        assert_eq!(
            (joined.origins[0].site.as_str(), joined.origins[0].requests),
            ("", 2.0)
        );
    }
}
