// SPDX-License-Identifier: Apache-2.0
//! The life of one Envoy process, from its start to its end.

use std::process::ExitStatus;
use std::time::Instant;

use super::EarlyDeaths;

/// The life of one Envoy process.
#[derive(Debug)]
pub struct Life {
    deaths: EarlyDeaths,
    start: Instant,
}

impl Life {
    /// Begins when Envoy has started with the cache whose `deaths` are counted.
    pub fn begin(deaths: EarlyDeaths) -> Self {
        Self {
            deaths,
            start: Instant::now(),
        }
    }

    /// Envoy has ended by itself.
    pub fn end(&self, status: ExitStatus) {
        self.deaths.note_end(status, self.start.elapsed());
    }

    /// Envoy has been told to end.
    pub fn end_in_order(&self) {
        self.deaths.forget();
    }
}
