// SPDX-License-Identifier: Apache-2.0
//! Progress of a story, on standard error: a bar on a terminal, else a line for each step.

use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Display;

/// A story with steps of about the same length.
pub struct Progress(ProgressBar);

impl Progress {
    /// Starts with this many steps, before the first one.
    ///
    /// # Panics
    /// Never, with this template.
    pub fn of(steps: usize) -> Self {
        let style = ProgressStyle::with_template("{pos}/{len} {wide_bar} {eta} left: {msg}");
        let bar = ProgressBar::new(steps as u64);
        Self(bar.with_style(style.expect("a template")))
    }

    /// Prints the step that begins.
    pub fn step(&self, what: impl Display) {
        let (position, length) = (self.0.position() + 1, self.0.length().unwrap_or(0));
        if self.0.is_hidden() {
            eprintln!("{position}/{length}: {what}");
        }
        self.0.set_message(what.to_string());
        self.0.set_position(position);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
