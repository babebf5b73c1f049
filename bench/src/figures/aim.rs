// SPDX-License-Identifier: Apache-2.0
//! Figures that Sluice is to reach, and whether it reaches them.

use crate::figures::conclusions::{QUIET, ROUNDS};
use crate::figures::{Figures, Table};

/// Bound of a figure.
#[derive(Clone, Copy, Debug)]
pub enum Aim {
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
}

/// A figure with its aim.
pub struct Goal {
    /// The figure, and whose it is.
    pub what: String,
    /// The bound.
    pub aim: Aim,
    /// Suffix of the number: a unit, or `x` for a ratio.
    pub unit: &'static str,
    /// The measured figure.
    pub figures: Figures,
}

/// The goals as a table.
pub fn table(goals: &[Goal]) -> Table {
    let columns = "figures to reach | aim | measured | by round | reached";
    Table::new(columns, goals.iter().map(Goal::cells))
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

impl Goal {
    /// Whether the rounds show that the aim is reached.
    fn verdict(&self) -> String {
        let foreign = self.figures.most_foreign();
        let reached = self
            .figures
            .values()
            .filter(|figure| self.aim.is_reached(*figure));
        match (reached.count(), self.figures.len()) {
            (_, rounds) if rounds < ROUNDS => format!("no conclusion from {rounds} round(s)"),
            _ if foreign > QUIET => format!(
                "no conclusion: other work took {:.0} % of the cores",
                foreign * 100.0
            ),
            (reached, rounds) if reached == rounds => "yes".to_owned(),
            (0, _) => "no".to_owned(),
            (reached, rounds) => format!("in {reached} of {rounds} rounds"),
        }
    }

    fn cells(&self) -> Vec<String> {
        let median = match self.figures.median() {
            median if median.is_nan() => "-".to_owned(),
            median => format!("{median:.2}{}", self.unit),
        };
        let range = self.figures.range(|figure| format!("{figure:.2}"));
        vec![
            self.what.clone(),
            self.aim.words(self.unit),
            median,
            range,
            self.verdict(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(aim: Aim, rounds: &[(f64, f64)]) -> Vec<String> {
        let figures = rounds.iter().copied().collect();
        let what = "CPU".to_owned();
        Goal {
            what,
            aim,
            unit: "x",
            figures,
        }
        .cells()
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
            "no conclusion: other work took 40 % of the cores"
        );
        assert!(cells(Aim::AtMost(1.0), &noisy[..1])[4].contains("1 round(s)"));
        assert_eq!(cells(Aim::AtMost(1.0), &[])[2], "-");
    }
}
