// SPDX-License-Identifier: Apache-2.0
//! Configuration that gives Envoy many statistics.

use serde_json::{Value, json};

/// Configuration with `count` clusters without requests. If `untagged`, statistics keep all parts of their names,
/// instead of having some as labels.
pub fn configuration(count: u32, untagged: bool) -> Value {
    let clusters: Vec<_> = (0..count).map(cluster).collect();
    let mut configuration = json!({"static_resources": {"clusters": clusters}});
    if untagged {
        configuration["stats_config"] = json!({"use_all_default_tags": false});
    }
    configuration
}

fn cluster(number: u32) -> Value {
    json!({"name": format!("spare_{number}"), "type": "STATIC"})
}
