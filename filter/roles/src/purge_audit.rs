// SPDX-License-Identifier: Apache-2.0
//! Facts about a purge for its line in the log, as Envoy's filter state: the caller and the order. `reply::receipt` adds
//! the receipt. The line itself is the access log of the listener, which adds the status.

use serde_json::{Value, json};

use crate::worker::metrics::Metrics;
use sluice_host::Host;

/// Maximum size of an order in the log, in bytes. An order may name thousands of URLs.
const MOST_BYTES: usize = 1_000;

/// Names the caller: `site` and the name of the site whose token the caller has shown, or else `edge`, `sns` and the ARN of
/// the topic, or `control socket`. Tokens are never logged.
pub fn tell_caller(host: &dyn Host, metrics: &Metrics, caller: &str) {
    tell(host, metrics, "sluice.purge_caller", caller);
}

/// Repeats a call's order as JSON, which has no line breaks.
pub fn tell_order(host: &dyn Host, metrics: &Metrics, body: &[u8]) {
    if let Ok(order) = serde_json::from_slice::<Value>(body) {
        tell(host, metrics, "sluice.purge_order", &cut(order.to_string()));
    }
}

/// Names the URLs that a call purges without an order.
pub fn tell_urls(host: &dyn Host, metrics: &Metrics, urls: &[String]) {
    let order = match urls {
        [url] => json!({"url": url}),
        urls => json!({"urls": urls}),
    };
    tell(host, metrics, "sluice.purge_order", &cut(order.to_string()));
}

/// Sets a property. Its failure does not stop the purge.
fn tell(host: &dyn Host, metrics: &Metrics, property: &str, value: &str) {
    if let Err(error) = host.set_property(property, value) {
        metrics.fault("the log of a purge lacks a field", error);
    }
}

/// Shortens a text to the bound.
fn cut(mut text: String) -> String {
    if text.len() > MOST_BYTES {
        let mut ends = (0..=MOST_BYTES).rev();
        let end = ends.find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_order_is_cut_between_characters() {
        assert_eq!(cut("a".repeat(1_000)), "a".repeat(1_000));
        let long = cut("ä".repeat(1_000));
        assert_eq!(long.chars().count(), 501);
        assert!(long.ends_with("ä…"));
    }
}
