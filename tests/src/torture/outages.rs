// SPDX-License-Identifier: Apache-2.0
//! Times at which the edges were down.

use super::clock::Moment;
use super::fleet::EDGES;
use super::spans::{Span, Spans};

/// All outages of a run, by edge.
#[derive(Default)]
pub struct Outages([Spans; EDGES]);

impl Outages {
    /// The outages of one edge.
    #[must_use]
    pub fn of(&self, edge: usize) -> &Spans {
        &self.0[edge]
    }

    /// Whether an edge was down at some time between these moments.
    #[must_use]
    pub fn touch(&self, from: Moment, to: Moment) -> bool {
        self.0.iter().any(|spans| spans.touch(from, to))
    }

    /// The outages that overlap this time.
    #[must_use]
    pub fn within(&self, from: Moment, to: Moment) -> Vec<Span> {
        let spans = self.0.iter().flat_map(|spans| spans.within(from, to));
        spans.collect()
    }
}
