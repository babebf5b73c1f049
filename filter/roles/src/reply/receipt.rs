// SPDX-License-Identifier: Apache-2.0
//! The reply to a purge.

use sluice_core::purge::PurgeReceipt;

use sluice_host::{self as host, Host};

/// Adds the number of a purge, and the workers that have applied it, such as `1/2`, to its line in the log.
///
/// # Errors
/// The host refused a call.
pub fn log_receipt(host: &dyn Host, receipt: &PurgeReceipt) -> host::Result<()> {
    let all = receipt.workers + receipt.missing.len();
    let workers = format!("{}/{all}", receipt.workers);
    host.set_property("sluice.purge_number", &receipt.number.to_string())?;
    host.set_property("sluice.purge_workers", &workers)
}

/// Sends the result of a purge to its caller.
pub fn answer_receipt(host: &dyn Host, receipt: &PurgeReceipt) -> host::Result<()> {
    let (number, workers, missing) = (receipt.number, receipt.workers, receipt.missing.len());
    let (status, error) = match (receipt.recorded, missing) {
        (true, 0) => (200, None),
        (true, _) => {
            let error = "not acknowledged by every worker; to be sure, purge again";
            (202, Some(error))
        }
        (false, _) => {
            let error = "in effect, but not in the journal: entries could come back with a restart";
            (500, Some(error))
        }
    };
    let error = error.map_or_else(String::new, |error| {
        format!(",\"missing\":{missing},\"error\":\"{error}\"")
    });
    let body = format!("{{\"number\":{number},\"workers\":{workers}{error}}}\n");
    let headers = [("content-type", "application/json")];
    host.respond(status, "sluice_purged", &headers, &body)
}
