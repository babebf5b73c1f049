// SPDX-License-Identifier: Apache-2.0
//! The reply to a purge.

use sluice_core::purge::Receipt;

use crate::host;

/// Tells the caller what came of its purge.
pub fn answer_receipt(receipt: &Receipt) -> host::Result<()> {
    let (number, workers) = (receipt.number, receipt.workers);
    let mut body = format!("{{\"number\":{number},\"workers\":{workers}");
    let status = match (receipt.recorded, receipt.missing.len()) {
        (true, 0) => 200,
        (true, missing) => {
            let error = "not acknowledged by every worker; to be sure, purge again";
            body.push_str(&format!(",\"missing\":{missing},\"error\":\"{error}\""));
            202
        }
        (false, missing) => {
            let error = "in effect, but not in the journal: entries could come back with a restart";
            body.push_str(&format!(",\"missing\":{missing},\"error\":\"{error}\""));
            500
        }
    };
    body.push_str("}\n");
    let headers = [("content-type", "application/json")];
    host::respond(status, "sluice_purged", &headers, &body)
}
