// SPDX-License-Identifier: Apache-2.0
//! A policy with which the edge keeps responses without caching headers, so that tests need not set a time.

use serde_json::{Value, json};

/// Completes the policy of this text, or the one for an HTTP origin, with times to live and without staleness, where
/// it does not set them. A text that is not a policy stays unchanged.
pub fn lasting(policy: Option<&str>) -> String {
    let text = policy.unwrap_or("origin: {kind: http}");
    let Ok(Value::Object(mut document)) = serde_saphyr::from_str(text) else {
        return text.to_owned();
    };
    let cache = document.entry("cache").or_insert_with(|| json!({}));
    if let Value::Object(cache) = cache {
        let ttl = json!({"200": "1h", "203": "1h", "301": "1h", "308": "1h", "default": "1s"});
        cache.entry("ttl").or_insert(ttl);
        cache.entry("stale_if_error").or_insert(json!("0s"));
    }
    Value::Object(document).to_string()
}
