// SPDX-License-Identifier: Apache-2.0
//! Figures that Sluice is to reach, and whether it does.

use crate::figures::conclusions::QUIET;
use crate::figures::sample::{Sample, extremes};
use crate::report::table;
use serde_json::{Value, json};

/// One round's figure, and the part of the machine that others took meanwhile.
pub type Round = (f64, f64);

/// What a figure is to be.
#[derive(Clone, Copy, Debug)]
pub enum Aim {
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
}

/// A figure with its aim.
pub struct Figure {
    /// What it is, and of whom.
    pub what: String,
    /// What it is to be.
    pub aim: Aim,
    /// After the number: a unit, or `x` for a ratio.
    pub unit: &'static str,
    /// Each round's.
    pub rounds: Vec<Round>,
}

/// The columns of a table of figures.
pub const COLUMNS: [&str; 5] = ["figures to reach", "aim", "measured", "by round", "reached"];

/// `ours` by `theirs`, round by round; the busier of both counts.
pub fn ratios(ours: &[Round], theirs: &[Round]) -> Vec<Round> {
    let pairs = ours.iter().zip(theirs);
    pairs
        .map(|(our, their)| (our.0 / their.0, our.1.max(their.1)))
        .collect()
}

/// `ours` less `theirs`, round by round.
pub fn differences(ours: &[Round], theirs: &[Round]) -> Vec<Round> {
    let pairs = ours.iter().zip(theirs);
    pairs
        .map(|(our, their)| (our.0 - their.0, our.1.max(their.1)))
        .collect()
}

impl Aim {
    fn is_reached(self, figure: f64) -> bool {
        match self {
            Self::AtMost(most) => figure <= most,
            Self::AtLeast(least) => figure >= least,
        }
    }

    fn words(self, unit: &str) -> String {
        match self {
            Self::AtMost(most) => format!("<= {most}{unit}"),
            Self::AtLeast(least) => format!(">= {least}{unit}"),
        }
    }
}

impl Figure {
    /// Whether the rounds allow to say that it is reached.
    fn verdict(&self) -> String {
        let (_, foreign) = extremes(self.rounds.iter().map(|round| round.1));
        let reached = self
            .rounds
            .iter()
            .filter(|round| self.aim.is_reached(round.0));
        match (reached.count(), self.rounds.len()) {
            (_, rounds @ 0..3) => format!("no conclusion from {rounds} round(s)"),
            _ if foreign > QUIET => {
                format!(
                    "no conclusion: others took {:.0} % of the cores",
                    foreign * 100.0
                )
            }
            (reached, rounds) if reached == rounds => "yes".to_owned(),
            (0, _) => "no".to_owned(),
            (reached, rounds) => format!("in {reached} of {rounds} rounds"),
        }
    }

    /// By [`COLUMNS`].
    pub fn cells(&self) -> Vec<String> {
        let figures = || self.rounds.iter().map(|round| round.0);
        let (least, most) = extremes(figures());
        let (median, range) = if self.rounds.is_empty() {
            ("-".to_owned(), "-".to_owned())
        } else {
            let median = Sample::of(figures()).median();
            (
                format!("{median:.2}{}", self.unit),
                format!("{least:.2}-{most:.2}"),
            )
        };
        let aim = self.aim.words(self.unit);
        vec![self.what.clone(), aim, median, range, self.verdict()]
    }
}

/// For the terminal.
pub fn text(figures: &[Figure]) -> String {
    let rows: Vec<_> = figures.iter().map(Figure::cells).collect();
    table::render(&COLUMNS, &rows)
}

/// For the page.
pub fn table(figures: &[Figure]) -> Value {
    let rows: Vec<_> = figures.iter().map(Figure::cells).collect();
    json!({"columns": COLUMNS, "rows": rows})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(aim: Aim, rounds: &[Round]) -> Vec<String> {
        let figure = Figure {
            what: "CPU".to_owned(),
            aim,
            unit: "x",
            rounds: rounds.to_vec(),
        };
        figure.cells()
    }

    #[test]
    fn a_figure_is_reached_when_every_round_says_so() {
        let rounds = [(0.9, 0.0), (0.95, 0.02), (0.8, 0.0)];
        assert_eq!(
            cells(Aim::AtMost(0.95), &rounds),
            ["CPU", "<= 0.95x", "0.90x", "0.80-0.95", "yes"]
        );
        assert_eq!(cells(Aim::AtMost(0.5), &rounds)[4], "no");
        assert_eq!(cells(Aim::AtLeast(0.9), &rounds)[4], "in 2 of 3 rounds");
    }

    #[test]
    fn a_noisy_machine_reaches_nothing() {
        let noisy = [(0.1, 0.0), (0.1, 0.4), (0.1, 0.0)];
        assert_eq!(
            cells(Aim::AtMost(1.0), &noisy)[4],
            "no conclusion: others took 40 % of the cores"
        );
        assert!(cells(Aim::AtMost(1.0), &noisy[..1])[4].contains("1 round(s)"));
        assert_eq!(cells(Aim::AtMost(1.0), &[])[2], "-");
    }

    #[test]
    fn rounds_are_paired() {
        let (ours, theirs) = ([(2.0, 0.1), (3.0, 0.0)], [(1.0, 0.0), (2.0, 0.2)]);
        assert_eq!(ratios(&ours, &theirs), [(2.0, 0.1), (1.5, 0.2)]);
        assert_eq!(differences(&ours, &theirs), [(1.0, 0.1), (1.0, 0.2)]);
    }
}
