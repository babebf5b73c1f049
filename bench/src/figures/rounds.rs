// SPDX-License-Identifier: Apache-2.0
//! Rounds, and figures of each round.

use crate::figures::Distribution;
use crate::progress::Progress;
use std::fmt::Display;

/// The rounds of one contender in one situation.
#[derive(Clone, Debug)]
pub struct Rounds<R>(Vec<(R, f64)>);

impl<R> Default for Rounds<R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<R> Rounds<R> {
    /// Adds the result of a round, and the part of all cores, 0 to 1, that other work took meanwhile.
    pub fn add(&mut self, round: (R, f64)) {
        self.0.push(round);
    }

    /// Whether nothing was measured.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Results of the rounds.
    pub fn iter(&self) -> impl Iterator<Item = &R> + Clone {
        self.0.iter().map(|(run, _)| run)
    }

    /// A figure, round by round.
    pub fn of(&self, figure: impl Fn(&R) -> f64) -> Figures {
        let figures = self.0.iter();
        figures
            .map(|(run, foreign)| (figure(run), *foreign))
            .collect()
    }

    /// A figure, round by round; empty if one of the rounds does not have it.
    pub fn of_all(&self, figure: impl Fn(&R) -> Option<f64>) -> Figures {
        let figures = self.0.iter();
        let figures = figures.map(|(run, foreign)| Some((figure(run)?, *foreign)));
        figures.collect::<Option<_>>().unwrap_or_default()
    }

    /// The sum of a count over the rounds.
    pub fn sum(&self, count: impl Fn(&R) -> u64) -> u64 {
        self.iter().map(count).sum()
    }
}

/// All rounds of one case: a contender in a situation.
pub struct Row<C, R> {
    /// The case.
    pub case: C,
    /// Its rounds.
    pub runs: Rounds<R>,
}

/// Measures each case once in a round, in turn. Leaves out the cases for which `measure` returns `None`.
pub async fn in_turn<C: Copy + Display, R>(
    cases: impl IntoIterator<Item = C>,
    rounds: u32,
    mut measure: impl AsyncFnMut(C, u32) -> Option<(R, f64)>,
) -> Vec<Row<C, R>> {
    let mut rows: Vec<_> = cases.into_iter().map(Row::new).collect();
    let progress = Progress::of(rows.len() * rounds as usize);
    for round in 1..=rounds {
        for row in &mut rows {
            progress.step(format_args!("{}, round {round}", row.case));
            if let Some(run) = measure(row.case, round).await {
                row.runs.add(run);
            }
        }
    }
    rows.retain(|row| !row.runs.is_empty());
    rows
}

impl<C, R> Row<C, R> {
    /// Makes a row without rounds.
    pub fn new(case: C) -> Self {
        Self {
            case,
            runs: Rounds::default(),
        }
    }

    /// The part of all cores that other work took, in each round of these rows.
    pub fn foreign(rows: &[Self]) -> impl Iterator<Item = f64> {
        rows.iter()
            .flat_map(|row| row.runs.0.iter().map(|(_, foreign)| *foreign))
    }
}

impl<C: Display, R> Row<C, R> {
    /// The distribution of each round of these rows, named by the case and `what`.
    pub fn distributions(
        rows: &[Self],
        what: &str,
        of: impl Fn(&R) -> &Distribution,
    ) -> Vec<(String, Distribution)> {
        let rounds = rows.iter().flat_map(|row| {
            row.runs
                .iter()
                .zip(1..)
                .map(move |(run, round)| (row, run, round))
        });
        let named = rounds.map(|(row, run, round)| {
            let name = format!("{}{what}, round {round}", row.case);
            (name, of(run).clone())
        });
        named.collect()
    }
}

/// A figure of each round, with the part of all cores, 0 to 1, that other work took meanwhile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures(Vec<(f64, f64)>);

impl FromIterator<(f64, f64)> for Figures {
    fn from_iter<I: IntoIterator<Item = (f64, f64)>>(rounds: I) -> Self {
        Self(rounds.into_iter().collect())
    }
}

impl FromIterator<f64> for Figures {
    /// Figures that do not depend on other work.
    fn from_iter<I: IntoIterator<Item = f64>>(figures: I) -> Self {
        figures.into_iter().map(|figure| (figure, 0.0)).collect()
    }
}

impl Figures {
    /// Number of rounds.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// The figure of each round.
    pub fn values(&self) -> impl Iterator<Item = f64> {
        self.0.iter().map(|(figure, _)| *figure)
    }

    /// The largest part that other work took.
    pub fn most_foreign(&self) -> f64 {
        self.0.iter().map(|round| round.1).fold(0.0, f64::max)
    }

    /// The median, the lower one of two; NaN if there are no rounds.
    pub fn median(&self) -> f64 {
        let mut sorted: Vec<_> = self.values().collect();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len().saturating_sub(1) / 2;
        sorted.get(middle).copied().unwrap_or(f64::NAN)
    }

    /// The smallest and the largest.
    pub fn extremes(&self) -> (f64, f64) {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        self.values().fold(ends, |(least, most), value| {
            (least.min(value), most.max(value))
        })
    }

    /// The smallest and the largest as text, or one of them if they are the same.
    pub fn range(&self, format: impl Fn(f64) -> String) -> String {
        let (least, most) = self.extremes();
        let (least, most) = (format(least), format(most));
        match self.0.len() {
            0 => "-".to_owned(),
            _ if least == most => least,
            _ => format!("{least}-{most}"),
        }
    }

    /// Combines these figures with the others, round by round; the part of other work is the larger one of both.
    pub fn with(&self, others: &Self, of: impl Fn(f64, f64) -> f64) -> Self {
        let pairs = self.0.iter().zip(&others.0);
        pairs
            .map(|(one, other)| (of(one.0, other.0), one.1.max(other.1)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::format::whole;

    #[test]
    fn the_median_is_one_of_the_figures() {
        let figures = |values: &[f64]| values.iter().copied().collect::<Figures>();
        assert_eq!(figures(&[3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(figures(&[3.0, 1.0]).median(), 1.0);
        assert!(figures(&[]).median().is_nan());
    }

    #[test]
    fn figures_that_agree_are_one() {
        let figures = |values: &[f64]| values.iter().copied().collect::<Figures>();
        assert_eq!(figures(&[2.0, 2.1]).range(whole), "2");
        assert_eq!(figures(&[3.0, 1.0, 2.0]).range(whole), "1-3");
        assert_eq!(figures(&[]).range(whole), "-");
    }

    #[test]
    fn rounds_are_paired_and_the_busier_machine_counts() {
        let ours = Figures(vec![(2.0, 0.1), (3.0, 0.0)]);
        let theirs = Figures(vec![(1.0, 0.0), (2.0, 0.2)]);
        let ratios = ours.with(&theirs, |our, their| our / their);
        assert_eq!(ratios, Figures(vec![(2.0, 0.1), (1.5, 0.2)]));
    }

    #[test]
    fn a_figure_that_a_round_lacks_is_one_of_no_round() {
        let mut rounds = Rounds::default();
        rounds.add((Some(1.0), 0.0));
        assert_eq!(rounds.of_all(|run| *run).len(), 1);
        rounds.add((None, 0.0));
        assert_eq!(rounds.of_all(|run| *run).len(), 0);
    }
}
