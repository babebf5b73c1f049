// SPDX-License-Identifier: Apache-2.0
//! A policy by which the edge keeps responses that say nothing of caching, so that tests need not say for how long.

use serde_json::{Value, json};

/// The policy of this text, or else that for an HTTP origin, with times to live and without staleness where it does not
/// say. A text that is no policy stays as it is.
pub fn lasting(policy: Option<&str>) -> String {
    let text = policy.unwrap_or("origin: {kind: http}");
    let Ok(Value::Object(mut document)) = serde_yaml_ng::from_str(text) else {
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
