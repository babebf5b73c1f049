// SPDX-License-Identifier: Apache-2.0
//! The last error of each site's origin.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::recorded_url::RecordedUrl;

/// An error of an origin.
#[derive(Clone, Debug)]
pub struct OriginError {
    /// The time of the error, in milliseconds since the Unix epoch.
    pub at_millis: u64,
    /// The status of the response. 502 to 504 if the origin has sent none.
    pub status: u16,
    /// The bucket's error code, such as `SlowDown`, or Envoy's reason for the lack of a response.
    pub code: Option<Box<str>>,
    /// The bucket's `X-Amz-Request-Id`.
    pub request_id: Option<Box<str>>,
    /// The requested path at the origin.
    pub url: RecordedUrl,
}

/// The last error of each site's origin, since the start of the worker.
#[derive(Debug, Default)]
pub struct OriginErrors(BTreeMap<Box<str>, OriginError>);

impl OriginErrors {
    /// Records an error of a site's origin in place of the previous one.
    pub fn note(&mut self, site: &str, error: OriginError) {
        match self.0.get_mut(site) {
            Some(last) => *last = error,
            None => drop(self.0.insert(site.into(), error)),
        }
    }

    /// Forgets the errors of other sites than these.
    pub fn keep<'a>(&mut self, sites: impl Iterator<Item = &'a str>) {
        let sites: Vec<_> = sites.collect();
        self.0.retain(|site, _| sites.contains(&&**site));
    }

    /// The last errors of these sites as JSON.
    pub fn to_json<'a>(&self, sites: impl Iterator<Item = &'a str>) -> impl Iterator<Item = Value> {
        sites.map(|site| {
            let last = self.0.get(site).map(OriginError::to_json);
            json!({"site": site, "last_error": last})
        })
    }
}

impl OriginError {
    fn to_json(&self) -> Value {
        json!({
            "at_ms": self.at_millis,
            "status": self.status,
            "code": self.code,
            "request_id": self.request_id,
            "path": self.url.shown(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_error_of_each_site_is_kept() {
        let mut errors = OriginErrors::default();
        for (site, status) in [("one", 500), ("two", 503), ("one", 502)] {
            let error = OriginError {
                at_millis: 9,
                status,
                code: Some("SlowDown".into()),
                request_id: None,
                url: RecordedUrl::new(b"/a?token=private"),
            };
            errors.note(site, error);
        }
        let shown = errors.to_json(["one", "three"].into_iter());
        assert_eq!(
            Value::from_iter(shown),
            json!([
                {"site": "one", "last_error": {
                    "at_ms": 9, "status": 502, "code": "SlowDown", "request_id": null, "path": "/a",
                }},
                {"site": "three", "last_error": null},
            ])
        );
        errors.keep(["two"].into_iter());
        assert_eq!(errors.0.len(), 1);
    }
}
