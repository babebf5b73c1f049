// SPDX-License-Identifier: Apache-2.0
//! `sluice log`: the requests that the edge has answered.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use clap::Args;

use super::{EdgeClient, EdgeOptions, notes, write};
use crate::control::answers::{Decision, Decisions};
use crate::control::query::Query;
use crate::control::text::{bytes, clock_time, duration, printable, site_name};
use crate::log::warn;

/// The time between two questions.
const PERIOD: Duration = Duration::from_millis(500);

/// Options of `sluice log`.
#[derive(Args, Debug)]
pub struct ShowLog {
    #[arg(value_name = "QUERY", help = Query::help())]
    queries: Vec<Query>,
    /// Show requests as they end, until this command is stopped
    #[arg(short, long)]
    pub follow: bool,
    /// Show and compare paths with their queries. Values that look like credentials are hidden
    #[arg(long)]
    pub query: bool,
    /// The edge and the form of the output: one JSON object on each line
    #[command(flatten)]
    pub edge: EdgeOptions,
}

impl ShowLog {
    /// Prints the requests that the edge remembers, or follows them.
    ///
    /// # Errors
    /// The edge or its filter does not answer.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let client = EdgeClient::new(&self.edge)?;
        let query = u8::from(self.query);
        let start = if self.follow { "" } else { "&all=1" };
        let mut answer: Decisions = client.ask(&format!("/decisions?query={query}{start}"), &[])?;
        if !self.follow && answer.decisions.is_empty() {
            warn(
                "no requests are recorded: set SLUICE_DECISIONS for the edge to record always, or follow requests \
                 with --follow",
            );
        }
        let mut next: BTreeMap<u32, u64> = BTreeMap::new();
        let mut silent = Vec::new();
        loop {
            if answer.silent != silent {
                silent.clone_from(&answer.silent);
                notes(&silent, None, false)
                    .iter()
                    .for_each(|note| warn(note));
            }
            if !self.show(&answer)? {
                return Ok(ExitCode::SUCCESS);
            }
            next.append(&mut answer.next);
            if !answer.cut {
                if !self.follow {
                    return Ok(ExitCode::SUCCESS);
                }
                sleep(PERIOD);
            }
            let after = Decisions::after(&next);
            answer = client.ask(&format!("/decisions?query={query}&after={after}"), &[])?;
        }
    }

    /// Prints the requests to which the queries apply. Returns false if the reader of the output has gone.
    fn show(&self, answer: &Decisions) -> anyhow::Result<bool> {
        if answer.lost > 0 && self.follow {
            warn(&format!(
                "{} requests are missing: there were more than the edge remembers",
                answer.lost
            ));
        }
        let shown = answer.decisions.iter();
        let shown = shown.filter(|one| self.queries.iter().all(|query| query.matches(one)));
        let mut text = String::new();
        for decision in shown {
            match self.edge.json {
                true => writeln!(text, "{}", serde_json::to_string(decision)?)?,
                false => text += &line(decision, self.query),
            }
        }
        Ok(write(&text))
    }
}

#[expect(clippy::cast_precision_loss, reason = "rounded to one decimal")]
fn line(decision: &Decision, shows_query: bool) -> String {
    let query = match decision.query && !shows_query {
        true => "?…",
        false => "",
    };
    let status = decision.status;
    let mut line = format!(
        "{} {} {} {}{query} {} {} {}",
        clock_time(decision.at_ms),
        site_name(decision.site.as_deref().unwrap_or_default()),
        decision.method,
        decision.path,
        status.map_or("-".to_owned(), |status| status.to_string()),
        duration(decision.duration_ms),
        bytes(decision.bytes as f64),
    );
    let times = [
        ("waited", decision.waited_ms),
        ("origin", decision.origin_ms),
    ];
    line += &format!("  {}", decision.result.as_deref().unwrap_or("-"));
    for (name, millis) in times {
        if let Some(millis) = millis {
            line += &format!("  {name} {}", duration(millis));
        }
    }
    if let Some(reason) = &decision.not_stored {
        line += &format!("  not stored: {reason}");
    }
    printable(&line) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_line_with_its_times_and_its_reason() {
        let decision = Decision {
            at_ms: 1_764_252_847_123,
            site: Some("shop".to_owned()),
            method: "GET".to_owned(),
            path: "/search".to_owned(),
            query: true,
            status: Some(200),
            result: Some("miss".to_owned()),
            duration_ms: 2310,
            waited_ms: Some(5000),
            origin_ms: Some(2290),
            bytes: 2048,
            not_stored: Some("no-lifetime".to_owned()),
            ..Decision::default()
        };
        let expected = "14:14:07.123 shop GET /search?… 200 2.31 s 2.0 KiB  miss  waited 5.00 s  origin 2.29 s  \
            not stored: no-lifetime\n";
        assert_eq!(line(&decision, false), expected);
        let bare = line(&Decision::default(), true);
        assert_eq!(bare, "00:00:00.000 -   - 0 ms 0 B  -\n");
    }
}
