// SPDX-License-Identifier: Apache-2.0
//! The verdict on a response that is only inspected, for a question of the edge's operator.

use crate::worker::own_requests::calls::Calls;
use crate::worker::questions::Questions;
use serde_json::{Map, Value, json};
use sluice_core::freshness::{Storage, UncacheableReason, Verdict};
use sluice_core::origin_failure::OriginFailure;
use sluice_host::Host;

use super::Judged;
use crate::origin::fetch::Fetch;
use crate::request::call_kind::CallKind;
use crate::worker::questions::ONLINE;
use sluice_host::headers::Headers;

/// The value that stands for one that is not shown.
const HIDDEN: &str = "(hidden)";

/// Adds the verdict to the answer of the question that has caused the request, if one has.
pub fn tell(
    host: &dyn Host,
    calls: &Calls,
    questions: &mut Questions,
    fetch: &Fetch,
    headers: &Headers,
    status: u16,
    failure: Option<OriginFailure>,
) {
    if !fetch.link.request.is_for_store() {
        return;
    }
    let Some(call) = calls.get(fetch.link.stream) else {
        return;
    };
    if let CallKind::Inspection(call) = call.kind {
        let facts = facts(host, fetch, headers, status, failure);
        questions.pending.share(call, ONLINE, &facts);
    }
}

fn facts(
    host: &dyn Host,
    fetch: &Fetch,
    headers: &Headers,
    status: u16,
    failure: Option<OriginFailure>,
) -> Value {
    let judged = Judged::of(host, fetch, headers, status, None);
    let reason = fetch.response.reason.or(judged.verdict.reason());
    let reasons = match (&judged.verdict, reason) {
        (_, Some(reason)) => vec![format!("{}: {}", reason.name(), reason.meaning())],
        (Verdict::NoRoom(_), None) => vec!["no-room: The store has no room now.".to_owned()],
        (_, None) => Vec::new(),
    };
    let verdict = if judged.is_stored() {
        "stored"
    } else {
        "not stored"
    };
    let storage = match judged.verdict {
        Verdict::Store(storage) => Some(storage),
        _ => None,
    };
    let millis = |seconds: fn(&Storage) -> u64| {
        let seconds = storage.as_ref().map(seconds);
        seconds.map(|seconds| seconds.saturating_mul(1_000))
    };
    json!({
        "status": status,
        "verdict": verdict,
        "reasons": reasons,
        "remedy": reason.map(UncacheableReason::remedy),
        "key": judged.key,
        "ttl_ms": millis(|storage| storage.lifetime.ttl),
        "age_ms": millis(|storage| storage.age),
        "stale_while_revalidate_ms": millis(|storage| storage.lifetime.stale_while_revalidate),
        "stale_if_error_ms": millis(|storage| storage.lifetime.stale_if_error),
        "headers": shown(headers),
        "error": failure.map(error_of),
    })
}

const fn error_of(failure: OriginFailure) -> &'static str {
    match failure {
        OriginFailure::ResponseHeaders => "the response has more headers than the edge accepts",
        OriginFailure::NotModified => {
            "the origin has answered 304 to a request without a condition"
        }
        OriginFailure::NotReached => "no connection to the origin",
        OriginFailure::NoAnswer => "no valid response from the origin in time",
    }
}

/// The headers of the response. Cookies and the queries of URLs are hidden.
fn shown(headers: &Headers) -> Map<String, Value> {
    let mut shown = Map::new();
    let names = headers.iter().map(|(name, _)| name);
    for name in names.filter(|name| !name.starts_with(':') && !name.starts_with("x-sluice-")) {
        let joined = headers.joined(name);
        let value = joined
            .as_ref()
            .map_or(&[][..], |joined| joined.value().bytes());
        let value = String::from_utf8_lossy(value).into_owned();
        let value = match name {
            "set-cookie" => HIDDEN.to_owned(),
            "location" | "content-location" | "link" => without_queries(&value),
            _ => value,
        };
        shown.insert(name.to_owned(), value.into());
    }
    shown
}

/// A text with URLs whose queries are hidden.
fn without_queries(text: &str) -> String {
    let mut parts = text.split('?');
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(['>', ' ', ',', ';']).unwrap_or(part.len());
        shown.push('?');
        shown.push_str(HIDDEN);
        shown.push_str(part.get(end..).unwrap_or_default());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queries_of_urls_are_hidden() {
        for (text, shown) in [
            ("/a", "/a"),
            ("https://a/b?c=d&e", "https://a/b?(hidden)"),
            (
                "</a?x=1>; rel=next, </b?y>",
                "</a?(hidden)>; rel=next, </b?(hidden)>",
            ),
        ] {
            assert_eq!(without_queries(text), shown);
        }
    }
}
