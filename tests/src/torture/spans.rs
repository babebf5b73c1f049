// SPDX-License-Identifier: Apache-2.0
//! Times of a condition: a worker stood still, the edge was down.

use super::clock::{Clock, Moment};
use std::sync::Mutex;
use std::time::Duration;

/// Beginning and end; `None` for an end in the future.
pub type Span = (Moment, Option<Moment>);

/// All times of one condition.
#[derive(Default)]
pub struct Spans(Mutex<Vec<Span>>);

impl Spans {
    /// Begins a span; the number names it in [`Spans::end`].
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn begin(&self, at: Moment) -> usize {
        let mut spans = self.0.lock().unwrap();
        spans.push((at, None));
        spans.len() - 1
    }

    /// Ends a span.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn end(&self, number: usize, at: Moment) {
        self.0.lock().unwrap()[number].1 = Some(at);
    }

    /// Begins a span that ends when the value is dropped.
    #[must_use]
    pub fn hold(&self, clock: Clock) -> Held<'_> {
        Held {
            number: self.begin(clock.now()),
            spans: self,
            clock,
        }
    }

    /// Whether the condition held at some time between these moments.
    #[must_use]
    pub fn touch(&self, from: Moment, to: Moment) -> bool {
        !self.within(from, to).is_empty()
    }

    /// Whether a span began between these moments.
    #[must_use]
    pub fn begun(&self, from: Moment, to: Moment) -> bool {
        let within = self.within(from, to);
        within.iter().any(|(begun, _)| *begun >= from)
    }

    /// Total time of the condition between these moments.
    #[must_use]
    pub fn total(&self, from: Moment, to: Moment) -> Duration {
        let spans = self.within(from, to);
        let lengths = spans.iter().map(|(begun, ended)| {
            ended
                .unwrap_or(to)
                .min(to)
                .saturating_sub((*begun).max(from))
        });
        lengths.sum()
    }

    /// The spans that overlap this time.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn within(&self, from: Moment, to: Moment) -> Vec<Span> {
        let spans = self.0.lock().unwrap();
        let within = spans
            .iter()
            .filter(|(begun, ended)| *begun <= to && ended.is_none_or(|ended| ended >= from));
        within.copied().collect()
    }
}

/// A condition that holds.
pub struct Held<'a> {
    spans: &'a Spans,
    number: usize,
    clock: Clock,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.spans.end(self.number, self.clock.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_found_by_any_part_of_them() {
        let second = Duration::from_secs;
        let spans = Spans::default();
        let first = spans.begin(second(2));
        assert!(spans.touch(second(3), second(4)) && !spans.touch(second(0), second(1)));
        spans.end(first, second(5));
        assert!(spans.touch(second(4), second(9)) && !spans.touch(second(6), second(9)));
        assert_eq!(spans.total(second(0), second(4)), second(2));
    }
}
