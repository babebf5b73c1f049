// SPDX-License-Identifier: Apache-2.0
//! `sluice purge --feed`: writes purges to the feed, and says from when every edge has applied them.

use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use sluice_core::purge::FeedSubject;

use super::{FeedPlace, FeedWriter};
use crate::control::commands::{Purge, print};
use crate::log::say;
use crate::settings::Settings;

/// Longest time from the end of a pause of a reader until the purges are in effect.
const READING: Duration = Duration::from_secs(1);
/// Part of the interval that a reader adds at random.
const SPREAD: f64 = 0.1;

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
    let lines: Vec<_> = subjects
        .into_iter()
        .map(|subject| (!purge.soft, subject))
        .collect();
    let position = writer.append(&lines).with_context(|| name.clone())?;
    let delay = place.every.mul_f64(1.0 + SPREAD) + READING;
    let receipt = FeedReceipt {
        feed: name,
        id: position.id.to_string(),
        purged: purge.orders(),
        number: position.number,
        by: text_of(SystemTime::now() + delay)?,
    };
    let printed = print(
        &purge.edge,
        &receipt,
        |receipt| receipt.text(purge.soft),
        &[],
    );
    if purge.wait {
        sleep(delay);
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
    let urls = purge.url.iter().cloned().map(FeedSubject::Url);
    let prefixes = purge.prefix.iter().cloned().map(FeedSubject::Prefix);
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

/// A time in the form of RFC 3339, in seconds.
fn text_of(time: SystemTime) -> anyhow::Result<String> {
    let time = Timestamp::try_from(time).context("the clock of this machine")?;
    let seconds = Timestamp::from_second(time.as_second() + 1);
    Ok(seconds.context("the clock of this machine")?.to_string())
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
