// SPDX-License-Identifier: Apache-2.0
//! A request of a client that has ended, as it is recorded.

use serde_json::{Value, json};

use super::recorded_url::RecordedUrl;
use crate::workers::Millis;

/// The record of a request of a client that has ended.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The time of the end, in milliseconds since the Unix epoch.
    pub at_millis: u64,
    /// The site. `None` if no site serves the URL.
    pub site: Option<Box<str>>,
    /// The host that the client has named.
    pub host: Box<str>,
    /// The method.
    pub method: Box<str>,
    /// The path and the query that the client has named.
    pub url: RecordedUrl,
    /// The status of the response. `None` if the client has left before the response.
    pub status: Option<u16>,
    /// The result, as in the access log.
    pub result: Option<&'static str>,
    /// The time from the request to the end of the response.
    pub duration: Millis,
    /// The time for which the request has waited for another request.
    pub waited: Option<Millis>,
    /// The time from the last request to the origin to the start of its response.
    pub origin: Option<Millis>,
    /// The bytes of the response's body.
    pub bytes: u64,
    /// The reason for which the response is not stored.
    pub not_stored: Option<&'static str>,
    /// The client's `X-Request-Id`.
    pub request_id: Option<Box<str>>,
}

impl Decision {
    /// Whether the response is for this request alone: neither the store nor another request has provided it.
    pub fn is_miss(&self) -> bool {
        matches!(
            self.result,
            Some("miss" | "hit_for_miss" | "passed" | "wait_timeout")
        )
    }

    /// The result, and the reason for which the response is not stored.
    pub fn summary(&self) -> String {
        let result = self.result.unwrap_or("answered");
        match self.not_stored {
            Some(reason) => format!("{result}: {reason}"),
            None => result.to_owned(),
        }
    }

    /// The record as JSON, with the query of the URL if `query`.
    pub fn to_json(&self, query: bool) -> Value {
        json!({
            "at_ms": self.at_millis,
            "site": self.site,
            "host": self.host,
            "method": self.method,
            "path": self.url.shown(query),
            "query": self.url.has_query(),
            "status": self.status,
            "result": self.result,
            "duration_ms": self.duration,
            "waited_ms": self.waited,
            "origin_ms": self.origin,
            "bytes": self.bytes,
            "not_stored": self.not_stored,
            "request_id": self.request_id,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A hit for a URL.
    pub fn hit(url: &str) -> Decision {
        Decision {
            at_millis: 1_000,
            site: Some("shop".into()),
            host: "shop.test".into(),
            method: "GET".into(),
            url: RecordedUrl::new(url.as_bytes()),
            status: Some(200),
            result: Some("hit"),
            duration: 1,
            waited: None,
            origin: None,
            bytes: 10,
            not_stored: None,
            request_id: None,
        }
    }

    /// A miss for a URL, whose origin has taken `origin` milliseconds.
    pub fn miss(url: &str, origin: Millis) -> Decision {
        Decision {
            result: Some("miss"),
            origin: Some(origin),
            ..hit(url)
        }
    }

    #[test]
    fn a_decision_shows_its_query_only_on_demand() {
        let decision = miss("/search?q=private", 7);
        let shown = decision.to_json(false);
        assert_eq!(shown["path"], "/search");
        assert_eq!(shown["query"], true);
        assert!(!shown.to_string().contains("private"));
        assert_eq!(decision.to_json(true)["path"], "/search?q=private");
    }

    #[test]
    fn a_decision_takes_the_memory_that_the_settings_page_names() {
        let texts = "shop".len() + "shop.test".len() + "GET".len() + 36;
        assert!(
            size_of::<Decision>() + texts < 300,
            "{}",
            size_of::<Decision>()
        );
    }

    #[test]
    fn only_requests_that_the_origin_answers_alone_are_misses() {
        for (result, misses) in [
            ("hit", false),
            ("stale", false),
            ("revalidated", false),
            ("collapsed", false),
            ("miss", true),
            ("hit_for_miss", true),
            ("passed", true),
            ("wait_timeout", true),
            ("rejected", false),
        ] {
            let decision = Decision {
                result: Some(result),
                ..hit("/a")
            };
            assert_eq!(decision.is_miss(), misses, "{result}");
        }
    }
}
