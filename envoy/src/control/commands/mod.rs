// SPDX-License-Identifier: Apache-2.0
//! The commands that ask a running edge.

mod du;
mod edge_client;
mod explain;
mod flights;
mod log;
mod origins;
mod purge;
mod purges;
mod top;

use std::io::{self, Write as _};
use std::process::ExitCode;

use serde::Serialize;

pub use du::ShowUsage;
pub use edge_client::{EdgeClient, EdgeOptions};
pub use explain::Explain;
pub use flights::ShowFlights;
pub use log::ShowLog;
pub use origins::ShowOrigins;
pub use purge::Purge;
pub use purges::ShowPurges;
pub use top::Top;

/// Prints an answer as text, or as JSON if the options ask for it. Notes about missing parts are lines of standard
/// error.
///
/// # Errors
/// The answer cannot be written as JSON.
pub fn print<T: Serialize>(
    options: &EdgeOptions,
    answer: &T,
    text: impl FnOnce(&T) -> String,
    notes: &[String],
) -> anyhow::Result<ExitCode> {
    for note in notes {
        crate::log::warn(note);
    }
    let text = match options.json {
        true => serde_json::to_string_pretty(answer)? + "\n",
        false => text(answer),
    };
    write(&text);
    Ok(ExitCode::SUCCESS)
}

/// Writes to standard output. Returns false if its reader has gone, as `head` does.
fn write(text: &str) -> bool {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .is_ok()
}

/// A note for each part of an answer that is missing.
fn notes(silent: &[u32], problem: Option<&str>, cut: bool) -> Vec<String> {
    let silent = silent.iter().map(|worker| {
        format!("worker {worker} has not answered within a second: its part is missing")
    });
    let problem = problem.map(|reason| format!("{reason}: its part is missing"));
    let cut =
        cut.then(|| "a worker has more than an answer can hold: the rest is missing".to_owned());
    silent.chain(problem).chain(cut).collect()
}
