// SPDX-License-Identifier: Apache-2.0
//! `sluice purge --feed`: writes purges to the feed, and says from when every edge has applied them.

use std::process::ExitCode;
use std::thread::sleep;

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use sluice_core::policy::purge::applied_within;
use sluice_core::purge::{FeedPurge, FeedSubject, applied_by};

use super::{FeedPlace, FeedWriter};
use crate::control::commands::{Purge, print};
use crate::log::say;
use crate::settings::Settings;

/// The receipt of the purges in a feed.
#[derive(Debug, Serialize)]
struct FeedReceipt {
    /// The object with the feed.
    feed: String,
    /// The identity of the feed.
    id: String,
    /// The subjects, as in the calls of a purge listener.
    purged: Vec<Value>,
    /// The number of the last line.
    number: u64,
    /// The time from which every edge that can read the feed has applied it.
    by: String,
}

/// Writes the purges of the command to the feed of the edges with the settings in the environment. Prints the receipt.
///
/// # Errors
/// The settings are not valid, or the bucket refuses. Then no purge was written.
pub fn write(purge: &Purge) -> anyhow::Result<ExitCode> {
    let subjects = subjects(purge)?;
    let settings = Settings::from_env()?;
    let place = FeedPlace::of(&settings)?;
    let client = place.client(&settings)?;
    let writer = FeedWriter(&client);
    let name = place.to_string();
    if purge.init {
        let made = writer.create().with_context(|| name.clone())?;
        say(&format!(
            "{name}: {}",
            if made { "made" } else { "is there already" }
        ));
    }
    if subjects.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let hard = !purge.soft;
    let subjects = subjects.into_iter();
    let lines: Vec<_> = subjects
        .map(|subject| FeedPurge { hard, subject })
        .collect();
    let position = writer.append(&lines).with_context(|| name.clone())?;
    let receipt = FeedReceipt {
        feed: name,
        id: position.id.to_string(),
        purged: purge.orders(),
        number: position.number,
        by: applied_by(Timestamp::now().as_second(), place.every),
    };
    let printed = print(
        &purge.edge,
        &receipt,
        |receipt| receipt.text(purge.soft),
        &[],
    );
    if purge.wait {
        sleep(applied_within(place.every));
    }
    printed
}

impl FeedReceipt {
    fn text(&self, soft: bool) -> String {
        let kind = if soft { "soft" } else { "hard" };
        let count = self.purged.len();
        let purges = match count {
            1 => format!("{kind} purge {}", self.number),
            _ => format!("{count} {kind} purges up to {}", self.number),
        };
        format!(
            "{purges} in {}: every edge has read it by {}\n",
            self.feed, self.by
        )
    }
}

/// The subjects of the lines, in the order of the arguments.
fn subjects(purge: &Purge) -> anyhow::Result<Vec<FeedSubject>> {
    let urls = purge.url.iter().chain(&purge.prefix);
    for url in urls {
        let names_host = url.starts_with("http://") || url.starts_with("https://");
        ensure!(
            names_host || url.starts_with('/'),
            "{url}: expected http:// or https:// and a host, or a path of the only site"
        );
    }
    let has_urls = !(purge.url.is_empty() && purge.prefix.is_empty());
    ensure!(
        !has_urls || purge.site.is_none(),
        "--site: expected with --key or alone, because the host of a URL names its site"
    );
    let urls = purge.url.iter().cloned().map(FeedSubject::url);
    let prefixes = purge.prefix.iter().cloned().map(FeedSubject::prefix);
    let mut subjects: Vec<_> = urls.chain(prefixes).collect();
    let site = purge.site.clone();
    if !purge.key.is_empty() {
        let keys = purge.key.clone();
        subjects.push(FeedSubject::Keys { site, keys });
    } else if purge.all || site.is_some() {
        subjects.push(FeedSubject::Everything { site });
    }
    Ok(subjects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        purge: Purge,
    }

    fn read(arguments: &[&str]) -> Purge {
        let arguments = ["purge", "--feed"].iter().chain(arguments);
        Command::try_parse_from(arguments).unwrap().purge
    }

    #[test]
    fn arguments_are_lines() {
        for (arguments, lines) in [
            (&["--all"][..], &["everything"][..]),
            (&["--site", "shop"], &["everything shop"]),
            (
                &["--site", "shop", "--key", "a", "--key", "b"],
                &["keys shop a b"],
            ),
            (
                &["--url", "/a", "--prefix", "https://a/b/", "--key", "c"],
                &["url /a", "prefix https://a/b/", "keys - c"],
            ),
            (&["--init"], &[]),
        ] {
            let found: Vec<_> = subjects(&read(arguments))
                .unwrap()
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(found, lines);
        }
    }

    #[test]
    fn arguments_that_no_line_can_have_are_refused() {
        for (arguments, error) in [
            (
                &["--url", "www.example.com/a"][..],
                "www.example.com/a: expected http://",
            ),
            (
                &["--url", "/a", "--site", "shop"],
                "--site: expected with --key",
            ),
        ] {
            let found = subjects(&read(arguments)).unwrap_err().to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }
}
