// SPDX-License-Identifier: Apache-2.0
//! The reply to a purge.

use serde_json::{Map, Value};
use sluice_core::purge::{FeedOutcome, PurgeReceipt};

use sluice_host::{self as host, Host};

/// Adds the number of a purge, its number in the purge feed, and the workers that have applied it, such as `1/2`, to its
/// line in the log.
///
/// # Errors
/// The host refused a call.
pub fn log_receipt(host: &dyn Host, receipt: &PurgeReceipt) -> host::Result<()> {
    let all = receipt.workers + receipt.missing.len();
    let workers = format!("{}/{all}", receipt.workers);
    host.set_property("sluice.purge_number", &receipt.number.to_string())?;
    if let Some(FeedOutcome::Written { number, .. }) = &receipt.feed {
        host.set_property("sluice.purge_feed", &number.to_string())?;
    }
    host.set_property("sluice.purge_workers", &workers)
}

/// Sends the result of a purge to its caller.
pub fn answer_receipt(host: &dyn Host, receipt: &PurgeReceipt) -> host::Result<()> {
    let missing = receipt.missing.len();
    let mut body = Map::from_iter([
        ("number".to_owned(), Value::from(receipt.number)),
        ("workers".to_owned(), Value::from(receipt.workers)),
    ]);
    if let Some(FeedOutcome::Written { number, by }) = &receipt.feed {
        body.insert("feed".to_owned(), Value::from(*number));
        body.insert("by".to_owned(), Value::from(by.as_str()));
    }
    let (status, error) = outcome_of(receipt);
    if let Some(error) = error {
        body.insert("missing".to_owned(), Value::from(missing));
        body.insert("error".to_owned(), Value::from(error));
    }
    let mut headers = vec![("content-type", "application/json")];
    headers.extend((status == 503).then_some(("retry-after", "1")));
    let body = format!("{}\n", Value::Object(body));
    host.respond(status, "sluice_purged", &headers, &body)
}

/// The status of a receipt, and its error.
fn outcome_of(receipt: &PurgeReceipt) -> (u16, Option<String>) {
    let told = |status, error: &str| (status, Some(error.to_owned()));
    match (&receipt.feed, receipt.recorded, receipt.missing.is_empty()) {
        (Some(FeedOutcome::Failed { status, error }), ..) => {
            let error = error.trim_end();
            let here = "in force on this edge only, because the purge feed was not written";
            told(*status, &format!("{here}: {error}; purge again"))
        }
        (_, false, _) => told(
            500,
            "in effect, but not in the journal: entries could come back with a restart",
        ),
        (_, true, false) => told(
            202,
            "not acknowledged by every worker; to be sure, purge again",
        ),
        (_, true, true) => (200, None),
    }
}
