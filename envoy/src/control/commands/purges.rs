// SPDX-License-Identifier: Apache-2.0
//! `sluice purges`: the last purges.

use std::process::ExitCode;

use clap::Args;

use super::{EdgeClient, EdgeOptions, print};
use crate::cache::{LoggedPurge, LoggedPurges};
use crate::control::text::TextTable;

/// Options of `sluice purges`.
#[derive(Args, Debug)]
pub struct ShowPurges {
    /// The number of purges, the newest last
    #[arg(short = 'n', long, default_value_t = 20)]
    pub number: usize,
    /// Also show the queries of the purged URLs
    #[arg(long)]
    pub query: bool,
    /// The edge and the form of the output
    #[command(flatten)]
    pub edge: EdgeOptions,
}

impl ShowPurges {
    /// Asks the edge, and prints the answer.
    ///
    /// # Errors
    /// The edge does not answer, or cannot read its log of purges.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let query = if self.query { "?query=1" } else { "" };
        let target = format!("/purges{query}");
        let mut answer: LoggedPurges = EdgeClient::new(&self.edge)?.ask(&target, &[])?;
        let older = answer.purges.len().saturating_sub(self.number);
        answer.purges.drain(..older);
        print(&self.edge, &answer, text, &[])
    }
}

fn text(answer: &LoggedPurges) -> String {
    if answer.purges.is_empty() {
        return "no purge is in the log\n".to_owned();
    }
    let columns = [
        "TIME", ">NUMBER", "CALLER", "CLIENT", "KIND", ">WORKERS", "RESULT", "SUBJECT",
    ];
    let mut table = TextTable::new(&columns);
    for purge in &answer.purges {
        let known = |text: Option<&str>| text.unwrap_or("-").to_owned();
        table.add_row([
            purge.time.clone(),
            purge
                .number
                .map_or("-".to_owned(), |number| number.to_string()),
            known(purge.caller.as_deref()),
            known(purge.client.as_deref()),
            kind(purge).to_owned(),
            known(purge.workers.as_deref()),
            result(purge),
            purge.subject(),
        ]);
    }
    table.text()
}

const fn kind(purge: &LoggedPurge) -> &'static str {
    match purge.soft {
        Some(true) => "soft",
        Some(false) => "hard",
        None => "-",
    }
}

fn result(purge: &LoggedPurge) -> String {
    match purge.status {
        200 => "done".to_owned(),
        202 => "not confirmed".to_owned(),
        500 => "not in the journal".to_owned(),
        status => format!("failed: {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_has_its_caller_its_kind_its_result_and_its_subject() {
        let soft = LoggedPurge {
            time: "2026-11-27T14:00:00.000Z".to_owned(),
            number: Some(7),
            feed: None,
            caller: Some("site shop".to_owned()),
            client: Some("10.0.0.7".to_owned()),
            order: Some(r#"{"prefix":"https://a.test/img/","soft":true}"#.to_owned()),
            soft: Some(true),
            status: 200,
            workers: Some("2/2".to_owned()),
            duration_ms: 21,
        };
        let failed = LoggedPurge {
            status: 503,
            ..LoggedPurge::default()
        };
        let purges = vec![soft, failed];
        let text = text(&LoggedPurges { purges });
        let lines: Vec<Vec<_>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let expected = [
            "2026-11-27T14:00:00.000Z",
            "7",
            "site",
            "shop",
            "10.0.0.7",
            "soft",
            "2/2",
            "done",
            "prefix",
            "https://a.test/img/",
        ];
        assert_eq!(lines[1], expected);
        assert_eq!(lines[2], ["-", "-", "-", "-", "-", "failed:", "503"]);
        assert_eq!(
            super::text(&LoggedPurges::default()),
            "no purge is in the log\n"
        );
    }
}
