// SPDX-License-Identifier: Apache-2.0
//! `sluice origins`: the counts, times and last errors of the sites' origins.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;

use super::{EdgeClient, EdgeOptions, notes, print};
use crate::control::answers::{Origin, OriginError, Origins};
use crate::control::text::{TextTable, date_time, number, printable, seconds, site_name};

/// Options of `sluice origins`.
#[derive(Args, Debug)]
pub struct ShowOrigins {
    /// Show the origin of this site only
    #[arg(long)]
    pub site: Option<String>,
    /// The edge and the form of the output
    #[command(flatten)]
    pub edge: EdgeOptions,
}

impl ShowOrigins {
    /// Asks the edge, and prints the answer.
    ///
    /// # Errors
    /// The edge does not answer.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let mut answer: Origins = EdgeClient::new(&self.edge)?.ask("/origins", &[])?;
        if let Some(site) = &self.site {
            answer.origins.retain(|origin| origin.site == *site);
        }
        let notes = notes(&answer.silent, answer.problem.as_deref(), false);
        print(&self.edge, &answer, text, &notes)
    }
}

fn text(answer: &Origins) -> String {
    let columns = [
        "SITE",
        ">REQUESTS",
        ">p50",
        ">p99",
        ">RETRIES",
        ">CONNECT FAILS",
        ">OPEN",
        ">5xx",
        "ERRORS OF THE BUCKET",
    ];
    let mut table = TextTable::new(&columns);
    for origin in &answer.origins {
        table.add_row(row(origin));
    }
    let mut text = table.text();
    for origin in &answer.origins {
        if let Some(error) = &origin.last_error {
            text += &last_error(&origin.site, error);
        }
    }
    text
}

fn row(origin: &Origin) -> [String; 9] {
    let time = |time: Option<f64>| time.map_or("-".to_owned(), seconds);
    [
        site_name(&origin.site).to_owned(),
        number(origin.requests),
        time(origin.first_byte_p50),
        time(origin.first_byte_p99),
        number(origin.retries),
        number(origin.connect_failures),
        number(origin.connections),
        number(origin.server_errors),
        bucket_errors(&origin.bucket_errors),
    ]
}

fn bucket_errors(errors: &BTreeMap<String, f64>) -> String {
    let shown = errors.iter();
    let shown = shown.map(|(reason, count)| format!("{reason} {}", number(*count)));
    match shown.collect::<Vec<_>>().as_slice() {
        [] => "-".to_owned(),
        shown => shown.join(", "),
    }
}

fn last_error(site: &str, error: &OriginError) -> String {
    let code = error.code.as_deref().map(|code| format!(" {code}"));
    let request = error.request_id.as_deref();
    let request = request.map(|id| format!(", x-amz-request-id {id}"));
    let line = format!(
        "last error of {}: {} {}{} for {}{}",
        site_name(site),
        date_time(error.at_ms),
        error.status,
        code.unwrap_or_default(),
        error.path,
        request.unwrap_or_default(),
    );
    printable(&line) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_origin_has_its_counts_and_its_last_error() {
        let mut assets = Origin {
            site: "assets".to_owned(),
            requests: 12.0,
            ..Origin::default()
        };
        assets.bucket_errors.insert("throttled".to_owned(), 3.0);
        let mut alone = Origin::default();
        (alone.first_byte_p50, alone.first_byte_p99) = (Some(0.25), Some(0.495));
        alone.last_error = Some(OriginError {
            at_ms: 1_764_252_847_123,
            status: 503,
            code: Some("SlowDown".to_owned()),
            request_id: Some("4F2A".to_owned()),
            path: "/a".to_owned(),
        });
        let answer = Origins {
            origins: vec![assets, alone],
            problem: None,
            silent: Vec::new(),
        };
        let text = text(&answer);
        let words: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            words[1],
            [
                "assets",
                "12",
                "-",
                "-",
                "0",
                "0",
                "0",
                "0",
                "throttled",
                "3"
            ]
        );
        assert_eq!(
            words[2],
            ["-", "0", "250", "ms", "495", "ms", "0", "0", "0", "0", "-"]
        );
        let last =
            "last error of -: 2025-11-27 14:14:07Z 503 SlowDown for /a, x-amz-request-id 4F2A";
        assert_eq!(text.lines().last(), Some(last));
    }
}
