// SPDX-License-Identifier: Apache-2.0
//! `sluice flights`: the objects that are being fetched, and the requests that wait for them.

use std::process::ExitCode;

use clap::Args;

use super::{EdgeClient, EdgeOptions, notes, print};
use crate::control::answers::{Flight, Flights};
use crate::control::text::{TextTable, bytes, duration, site_name};

/// Options of `sluice flights`.
#[derive(Args, Debug)]
pub struct ShowFlights {
    /// Show the flights of this site only
    #[arg(long)]
    pub site: Option<String>,
    /// The edge and the form of the output
    #[command(flatten)]
    pub edge: EdgeOptions,
}

impl ShowFlights {
    /// Asks the edge, and prints the answer.
    ///
    /// # Errors
    /// The edge or its filter does not answer.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let mut answer: Flights = EdgeClient::new(&self.edge)?.ask("/flights", &[])?;
        if let Some(site) = &self.site {
            answer.flights.retain(|flight| flight.site == *site);
        }
        let notes = notes(&answer.silent, None, answer.cut);
        print(&self.edge, &answer, text, &notes)
    }
}

fn text(answer: &Flights) -> String {
    if answer.flights.is_empty() {
        return "nothing is being fetched\n".to_owned();
    }
    let columns = [
        "SITE",
        "PATH",
        ">SINCE",
        ">GOT / LENGTH",
        ">WAITING",
        "LEADER",
    ];
    let mut table = TextTable::new(&columns);
    for flight in &answer.flights {
        let query = if flight.query { "?…" } else { "" };
        table.add_row([
            site_name(&flight.site).to_owned(),
            format!("{}{query}", flight.key),
            duration(flight.since_ms),
            progress(flight),
            flight.waiting.to_string(),
            leader(flight),
        ]);
    }
    table.text()
}

#[expect(clippy::cast_precision_loss, reason = "rounded to one decimal")]
fn progress(flight: &Flight) -> String {
    let got = bytes(flight.bytes as f64);
    match (flight.status, flight.length) {
        (None, _) => "headers not yet".to_owned(),
        (Some(_), None) => got,
        (Some(_), Some(length)) => {
            let percentage = 100 * flight.bytes.min(length) / length.max(1);
            format!("{got} / {} {percentage:>3} %", bytes(length as f64))
        }
    }
}

fn leader(flight: &Flight) -> String {
    let client = match flight.client {
        true => "client connected",
        false => "no client",
    };
    match flight.worker {
        Some(worker) => format!("worker {worker}, {client}"),
        None => "a silent worker".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flight_is_a_line_with_its_progress_and_its_waiting_requests() {
        let flight = |key: &str, status: Option<u16>, worker: Option<u32>| Flight {
            site: "files".to_owned(),
            key: key.to_owned(),
            query: status.is_none(),
            since_ms: 12_400,
            bytes: 1_153_433,
            length: status.map(|_| 4_613_734),
            status,
            waiting: 7,
            worker,
            client: true,
        };
        let flights = vec![
            flight("/downloads/big.iso", Some(200), Some(1)),
            flight("/search", None, None),
        ];
        let answer = Flights {
            flights,
            cut: false,
            silent: vec![0],
        };
        let expected = "\
SITE   PATH                  SINCE           GOT / LENGTH  WAITING  LEADER
files  /downloads/big.iso  12.40 s  1.1 MiB / 4.4 MiB  24 %        7  worker 1, client connected
files  /search?…           12.40 s       headers not yet        7  a silent worker
";
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeezed(&text(&answer)), squeezed(expected));
    }
}
