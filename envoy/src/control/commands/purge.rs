// SPDX-License-Identifier: Apache-2.0
//! `sluice purge`: takes stored responses out of service.

use std::process::ExitCode;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use ureq::http::StatusCode;

use super::{EdgeClient, EdgeOptions, write};
use crate::control::failure::ControlFailure;
use crate::net::unix_client::Call;

/// Options of `sluice purge`.
#[derive(Args, Debug)]
#[group(id = "subject", required = true, multiple = true, args = ["url", "prefix", "key", "site", "all", "init"])]
pub struct Purge {
    /// Purge this URL
    #[arg(long, value_name = "URL")]
    pub url: Vec<String>,
    /// Purge all URLs with this beginning
    #[arg(long, value_name = "URL")]
    pub prefix: Vec<String>,
    /// Purge all URLs whose stored response has this surrogate key; needs --site if there are several sites
    #[arg(long, value_name = "KEY")]
    pub key: Vec<String>,
    /// Purge in this site only; without --url, --prefix and --key the whole site
    #[arg(long)]
    pub site: Option<String>,
    /// Purge everything
    #[arg(long, conflicts_with_all = ["url", "prefix", "key", "site"])]
    pub all: bool,
    /// Have the stored responses revalidated at their next use, in place of never using them again
    #[arg(long)]
    pub soft: bool,
    /// Write the purges to the purge feed in the bucket, which every edge reads, in place of calling an edge
    #[arg(long, conflicts_with = "socket")]
    pub feed: bool,
    /// Make an empty feed if the bucket has none
    #[arg(long, requires = "feed")]
    pub init: bool,
    /// End after the time in which every edge reads the feed
    #[arg(long, requires = "feed")]
    pub wait: bool,
    /// The edge and the form of the output
    #[command(flatten)]
    pub edge: EdgeOptions,
}

/// The receipt of a purge.
#[derive(Debug, Deserialize, Serialize)]
struct Receipt {
    /// The subject, as in the call.
    #[serde(default)]
    purged: Value,
    /// The number of the purge.
    number: Option<u64>,
    /// The number of workers that have confirmed the purge.
    workers: Option<u64>,
    /// Whether every worker has confirmed the purge.
    #[serde(default)]
    confirmed: bool,
}

impl Purge {
    /// Carries the purges out, and prints their receipts. Fails if not every worker has confirmed them.
    ///
    /// # Errors
    /// The edge does not answer, or refuses a purge. Purges in front of it have been carried out.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let client = EdgeClient::new(&self.edge)?;
        let (mut receipts, mut refused) = (Vec::new(), None);
        for order in self.orders() {
            match purge(&client, &order) {
                Ok(receipt) => receipts.push(receipt),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        match self.edge.json {
            true => write(&(serde_json::to_string_pretty(&receipts)? + "\n")),
            false => write(
                &receipts
                    .iter()
                    .map(|receipt| self.text(receipt))
                    .collect::<String>(),
            ),
        };
        match refused {
            Some(error) => Err(error),
            None if receipts.iter().all(|receipt| receipt.confirmed) => Ok(ExitCode::SUCCESS),
            None => Ok(ExitCode::FAILURE),
        }
    }

    /// The documents of the calls, in the form of the purge listener.
    pub fn orders(&self) -> Vec<Value> {
        let urls = self.url.iter().map(|url| ("url", json!(url)));
        let prefixes = self.prefix.iter().map(|prefix| ("prefix", json!(prefix)));
        let keys = (!self.key.is_empty()).then(|| ("surrogate_keys", json!(self.key)));
        let mut subjects: Vec<_> = urls.chain(prefixes).chain(keys).collect();
        if subjects.is_empty() {
            subjects.push(("everything", json!(true)));
        }
        let order = |(name, subject): (&str, Value)| {
            let mut fields = Map::new();
            fields.insert(name.to_owned(), subject);
            if let Some(site) = &self.site {
                fields.insert("site".to_owned(), json!(site));
            }
            if self.soft {
                fields.insert("soft".to_owned(), json!(true));
            }
            Value::Object(fields)
        };
        subjects.into_iter().map(order).collect()
    }

    fn text(&self, receipt: &Receipt) -> String {
        let kind = if self.soft { "soft" } else { "hard" };
        let number = receipt.number.map(|number| format!(" {number}"));
        let workers = match receipt.workers {
            Some(1) => "1 worker".to_owned(),
            Some(workers) => format!("{workers} workers"),
            None => "the workers".to_owned(),
        };
        let state = match receipt.confirmed {
            true => format!("confirmed by {workers}"),
            false => "in effect, but not confirmed by every worker within two seconds".to_owned(),
        };
        let subject = subject_of(&receipt.purged);
        format!(
            "{kind} purge{} of {subject}: {state}\n",
            number.unwrap_or_default()
        )
    }
}

/// The subject of a purge in words.
fn subject_of(order: &Value) -> String {
    let list = |value: &Value| {
        let values = value.as_array().map_or(&[][..], Vec::as_slice);
        let values: Vec<_> = values.iter().filter_map(Value::as_str).collect();
        values.join(", ")
    };
    let subject = match (&order["url"], &order["prefix"], &order["surrogate_keys"]) {
        (Value::String(url), _, _) => url.clone(),
        (_, Value::String(prefix), _) => format!("{prefix}*"),
        (_, _, keys @ Value::Array(_)) => format!("surrogate keys {}", list(keys)),
        _ => "everything".to_owned(),
    };
    match &order["site"] {
        Value::String(site) => format!("{subject} in site {site}"),
        _ => subject,
    }
}

fn purge(client: &EdgeClient, order: &Value) -> anyhow::Result<Receipt> {
    let call = Call {
        method: "POST",
        body: &order.to_string(),
        ..Call::get("/purge")
    };
    let reply = client.call(&call)?;
    if !reply.status.is_success() {
        anyhow::bail!(
            "{}",
            ControlFailure::of_body(reply.status, &reply.body).reason
        );
    }
    let mut receipt: Receipt = serde_json::from_str(&reply.body)?;
    receipt.purged = order.clone();
    receipt.confirmed = reply.status == StatusCode::OK;
    Ok(receipt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purge() -> Purge {
        Purge {
            url: Vec::new(),
            prefix: Vec::new(),
            key: Vec::new(),
            site: None,
            all: false,
            soft: false,
            feed: false,
            init: false,
            wait: false,
            edge: EdgeOptions::default(),
        }
    }

    #[test]
    fn each_url_is_a_call_and_all_keys_are_one() {
        let mut several = purge();
        several.url = vec!["http://a/1".to_owned(), "http://a/2".to_owned()];
        several.key = vec!["home".to_owned(), "article-7".to_owned()];
        (several.site, several.soft) = (Some("a".to_owned()), true);
        let expected = [
            json!({"url": "http://a/1", "site": "a", "soft": true}),
            json!({"url": "http://a/2", "site": "a", "soft": true}),
            json!({"surrogate_keys": ["home", "article-7"], "site": "a", "soft": true}),
        ];
        assert_eq!(several.orders(), expected);
        assert_eq!(purge().orders(), [json!({"everything": true})]);
    }

    #[test]
    fn a_subject_is_written_in_words() {
        for (order, subject) in [
            (json!({"url": "http://a/1"}), "http://a/1"),
            (json!({"prefix": "http://a/x", "soft": true}), "http://a/x*"),
            (
                json!({"surrogate_keys": ["home", "b"], "site": "s"}),
                "surrogate keys home, b in site s",
            ),
            (
                json!({"everything": true, "site": "s"}),
                "everything in site s",
            ),
        ] {
            assert_eq!(subject_of(&order), subject);
        }
    }

    #[test]
    fn a_receipt_says_whether_every_worker_has_confirmed_the_purge() {
        let mut receipt = Receipt {
            purged: json!({"everything": true}),
            number: Some(12),
            workers: Some(2),
            confirmed: true,
        };
        let expected = "hard purge 12 of everything: confirmed by 2 workers\n";
        assert_eq!(purge().text(&receipt), expected);
        receipt.confirmed = false;
        assert!(
            purge()
                .text(&receipt)
                .contains("not confirmed by every worker")
        );
    }
}
