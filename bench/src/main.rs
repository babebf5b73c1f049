// SPDX-License-Identifier: Apache-2.0
//! Measures Sluice beside its peers: `sluice-bench STORY`; prints the names of stories by name or number, and how long
//! they take: `sluice-bench plan [STORY…]`; makes a page of the results: `sluice-bench report`; and runs the public
//! conformance suite against caches: `sluice-bench conformance`.
// A measuring tool: a broken expectation ends the run, and the panic says which.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod conformance;
mod contenders;
mod figures;
mod load;
mod machine;
mod origins;
mod peers;
mod progress;
mod report;
mod stories;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::process::ExitCode;
use std::sync::LazyLock;
use tokio::sync::oneshot;

/// Completes when the user wants the run to end.
fn interrupted() -> oneshot::Receiver<()> {
    let (tell, told) = oneshot::channel();
    let mut signals = Signals::new([SIGINT, SIGTERM]).expect("signal handlers");
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = tell.send(());
        }
    });
    told
}

/// Measures the story of this name, or runs the conformance suite.
async fn asked(wanted: &str, quick: bool) -> ExitCode {
    if wanted != "conformance" {
        stories::run(wanted, quick).await;
        return ExitCode::SUCCESS;
    }
    match conformance::run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Prints the names of these stories, and on standard error how long they take.
fn print_plan(wanted: &[String], quick: bool) -> ExitCode {
    match stories::chosen(wanted) {
        Ok(names) => {
            eprintln!("{}", stories::plan(&names, quick));
            println!("{}", names.join(" "));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    if wanted == "report" {
        report::write(&stories::names());
        return ExitCode::SUCCESS;
    }
    let quick = std::env::var("QUICK").is_ok_and(|value| !matches!(value.as_str(), "" | "0"));
    if wanted == "plan" {
        let words: Vec<_> = std::env::args().skip(2).collect();
        return print_plan(&words, quick);
    }
    if wanted != "conformance" && !stories::names().contains(&wanted.as_str()) {
        eprintln!(
            "usage: sluice-bench {}|plan [STORY…]|report|conformance",
            stories::names().join("|")
        );
        return ExitCode::from(2);
    }
    sluice::system::Machine::raise_open_files();
    LazyLock::force(&machine::BEFORE);
    let interrupted = interrupted();
    // One thread for all clients: their cost is the same for every contender. The origin has a separate thread.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        tokio::select! {
            code = asked(&wanted, quick) => code,
            _ = interrupted => {
                eprintln!("interrupted");
                ExitCode::from(130)
            }
        }
    })
}
