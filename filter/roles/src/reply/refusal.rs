// SPDX-License-Identifier: Apache-2.0
//! The refusal of a call to a listener of the edge's operator: an error as JSON.

use sluice_host::{Half, Host};

/// Refuses a call, or resets it if the host sends no answer. `details` is for the access log, and `allow` lists the methods of the listener.
pub fn answer_refusal(
    host: &dyn Host,
    status: u16,
    details: &'static str,
    allow: &str,
    error: &str,
) {
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(match status {
        401 => Some(("www-authenticate", "Bearer")),
        405 => Some(("allow", allow)),
        503 => Some(("retry-after", "1")),
        _ => None,
    });
    let error = serde_json::Value::from(error);
    let body = format!("{{\"error\":{error}}}\n");
    if host.respond(status, details, &headers, &body).is_err() {
        let _ = host.reset(Half::Request);
    }
}
