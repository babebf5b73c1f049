// SPDX-License-Identifier: Apache-2.0
//! `sluice top`: the sites and the URLs with the most requests, misses, bytes or time of the origin.

mod rates;
mod tables;

use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{EdgeClient, EdgeOptions, notes, print};
use crate::control::answers::{EdgeReading, RequestedUrls};
use crate::control::text::Screen;
use rates::SiteRates;

/// The time between two readings.
const PERIOD: Duration = Duration::from_secs(2);

/// Options of `sluice top`.
#[derive(Args, Debug)]
pub struct Top {
    /// Print the rates of two seconds, and end; also the default where standard output is not a terminal
    #[arg(long)]
    pub once: bool,
    /// The order of sites and URLs
    #[arg(long, value_enum, default_value_t = Sorting::Requests)]
    pub sort: Sorting,
    /// Show this site only
    #[arg(long)]
    pub site: Option<String>,
    /// The most URLs to show
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub urls: usize,
    /// Distinguish URLs by their queries, and show them. Values that look like credentials are hidden
    #[arg(long)]
    pub query: bool,
    /// The edge and the form of the output: with --json as with --once
    #[command(flatten)]
    pub edge: EdgeOptions,
}

/// The order of sites and URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sorting {
    /// The most requests
    Requests,
    /// The most requests that the origin had to answer
    Misses,
    /// The most bytes to clients
    Bytes,
    /// The longest time of the origin: of URLs in all, of sites to the first byte
    Origin,
}

/// The state between two readings.
#[derive(Debug, Serialize)]
pub struct TopAnswer {
    /// The edge at the end of the time, with totals since its start.
    edge: EdgeReading,
    /// The rates of the sites.
    sites: Vec<SiteRates>,
    /// The URLs, if the filter answers.
    #[serde(flatten)]
    urls: RequestedUrls,
    /// The reason for which the filter has not answered.
    problem: Option<String>,
}

impl Top {
    /// Shows the rates, again and again on a terminal.
    ///
    /// # Errors
    /// The edge does not answer.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let client = EdgeClient::new(&self.edge)?;
        let screen = Screen::find().filter(|_| !self.once && !self.edge.json);
        let mut earlier: EdgeReading = client.ask("/sites", &[])?;
        // The first question starts the recording, so that its answer is empty.
        let _ = self.ask_urls(&client);
        if let Some(screen) = screen {
            screen.show("reading …\n")?;
        }
        loop {
            sleep(PERIOD);
            let later: EdgeReading = client.ask("/sites", &[])?;
            let answer = self.answer(&earlier, &later, self.ask_urls(&client));
            let notes = notes(
                &answer.urls.silent,
                answer.problem.as_deref(),
                answer.urls.cut,
            );
            let Some(screen) = screen else {
                let text = |answer: &TopAnswer| tables::text(answer, self.query);
                return print(&self.edge, &answer, text, &notes);
            };
            let notes: String = notes.iter().map(|note| format!("{note}\n")).collect();
            screen.show(&(tables::text(&answer, self.query) + &notes))?;
            earlier = later;
        }
    }

    fn ask_urls(&self, client: &EdgeClient) -> anyhow::Result<RequestedUrls> {
        let query = u8::from(self.query);
        client.ask(&format!("/urls?query={query}"), &[])
    }

    fn answer(
        &self,
        earlier: &EdgeReading,
        later: &EdgeReading,
        urls: anyhow::Result<RequestedUrls>,
    ) -> TopAnswer {
        let (mut urls, problem) = match urls {
            Ok(urls) => (urls, None),
            Err(error) => (RequestedUrls::default(), Some(error.to_string())),
        };
        let mut sites = SiteRates::between(&earlier.totals, &later.totals);
        if let Some(name) = &self.site {
            sites.retain(|rates| rates.site == *name);
            urls.urls.retain(|url| url.site == *name);
        }
        sites.sort_by(|one, other| one.compare(other, self.sort));
        urls.urls.sort_by_key(|url| {
            std::cmp::Reverse(match self.sort {
                Sorting::Requests => url.requests,
                Sorting::Misses => url.misses,
                Sorting::Bytes => url.bytes,
                Sorting::Origin => url.origin_ms,
            })
        });
        urls.urls.truncate(self.urls);
        TopAnswer {
            edge: later.clone(),
            sites,
            urls,
            problem,
        }
    }
}
