// SPDX-License-Identifier: Apache-2.0
//! What may be said of two contenders that were measured in turn, and what may not.

use crate::figures::sample::{Sample, extremes};

/// A factor that varies more than this between rounds is not given as one figure.
const STEADY: f64 = 4.0;

/// A conclusion needs so many rounds.
const ROUNDS: usize = 3;

/// A conclusion needs a machine of which others take no more than this part.
pub const QUIET: f64 = 0.1;

/// A figure of two contenders: each round's, beside the part of the machine that others took.
pub struct Ratio<'a> {
    /// What the figure is; less is better.
    pub what: &'a str,
    /// Ours, and its rounds.
    pub ours: (&'a str, &'a [(f64, f64)]),
    /// Theirs.
    pub theirs: (&'a str, &'a [(f64, f64)]),
}

/// What comparisons allow to be said, in the order in which they were made.
#[derive(Default)]
pub struct Conclusions {
    said: Vec<String>,
    /// Comparisons of too few rounds.
    few: usize,
    /// Comparisons during which the machine was too busy, and the most that others took.
    noisy: (usize, f64),
}

impl Conclusions {
    /// Adds what is known without a comparison.
    pub fn say(&mut self, sentence: String) {
        self.said.push(sentence);
    }

    /// Compares, round by round.
    pub fn compare(&mut self, figures: &Ratio<'_>) {
        let both = figures.ours.1.iter().chain(figures.theirs.1);
        let (_, foreign) = extremes(both.map(|(_, foreign)| *foreign));
        if figures.ours.1.len().min(figures.theirs.1.len()) < ROUNDS {
            self.few += 1;
        } else if foreign > QUIET {
            self.noisy = (self.noisy.0 + 1, self.noisy.1.max(foreign));
        } else {
            self.said.push(ratio(figures));
        }
    }

    /// Compares, and says why where ours is more.
    pub fn compare_with_reason(&mut self, figures: &Ratio<'_>, reason: &str) {
        let before = self.said.len();
        self.compare(figures);
        let ours_is_more = format!(": {} has ", figures.ours.0);
        if let [said] = &mut self.said[before..]
            && said.contains(&ours_is_more)
        {
            said.push(' ');
            said.push_str(reason);
        }
    }

    /// All of them; those that were left out are one.
    pub fn all(&self) -> Vec<String> {
        let mut all = self.said.clone();
        if self.few > 0 {
            let count = self.few;
            all.push(format!(
                "{count} comparison(s) allow no conclusion: there were fewer than {ROUNDS} rounds."
            ));
        }
        if let (count @ 1.., foreign) = self.noisy {
            all.push(format!(
                "{count} comparison(s) allow no conclusion: others took up to {:.0} % of the cores meanwhile.",
                foreign * 100.0
            ));
        }
        all
    }
}

/// What the rounds of a quiet machine allow to be said.
fn ratio(figures: &Ratio<'_>) -> String {
    let Ratio {
        what,
        ours: (our_name, ours),
        theirs: (their_name, theirs),
    } = figures;
    let head = format!("{what}, {our_name} and {their_name}");
    let factors = ours.iter().zip(theirs.iter());
    let factors = Sample::of(factors.map(|((our, _), (their, _))| their / our));
    let (least, most) = extremes(factors.times().iter().copied());
    if least < 1.0 && most > 1.0 {
        return format!("{head}: no conclusion, neither is below the other in every round.");
    }
    let (low, high, factor, (least, most)) = if least >= 1.0 {
        (our_name, their_name, factors.median(), (least, most))
    } else {
        let inverse = (most.recip(), least.recip());
        (their_name, our_name, factors.median().recip(), inverse)
    };
    format!(
        "{what}: {high} has {factor:.1} times that of {low} ({least:.1} to {most:.1} over the rounds)."
    )
}

/// Compares the medians of `ours` and `theirs`, round by round.
pub fn compare(ours: (&str, &[Sample]), theirs: (&str, &[Sample])) -> String {
    let (our_name, our_rounds) = ours;
    let (their_name, their_rounds) = theirs;
    let pairs = our_rounds.iter().zip(their_rounds);
    let mut factors: Vec<_> = pairs
        .map(|(our, their)| their.median() / our.median())
        .collect();
    factors.sort_by(f64::total_cmp);
    let rounds = factors.len();
    let (least, most) = extremes(factors.iter().copied());
    let faster = factors.iter().filter(|&&factor| factor > 1.0).count();
    if rounds < ROUNDS {
        return format!("{our_name} and {their_name}: no conclusion from {rounds} round(s)");
    }
    if faster != 0 && faster != rounds {
        return format!(
            "{our_name} and {their_name}: no conclusion, the median is shorter with {our_name} in {faster} of {rounds} rounds"
        );
    }
    let (first, second, factor, range) = if faster == rounds {
        (our_name, their_name, factors[rounds / 2], (least, most))
    } else {
        (
            their_name,
            our_name,
            factors[rounds / 2].recip(),
            (most.recip(), least.recip()),
        )
    };
    let range = format!("{:.1} to {:.1} times", range.0, range.1);
    if most / least > STEADY {
        format!(
            "{first} wakes sooner than {second} in every round; by how much is not said, it varies too much ({range})"
        )
    } else {
        format!(
            "{first} wakes {factor:.1} times sooner than {second} at the median ({range} over the rounds)"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn rounds(medians: &[u64]) -> Vec<Sample> {
        let round = |&ms| Sample::new([Duration::from_millis(ms)]);
        medians.iter().map(round).collect()
    }

    fn said(ours: &[u64], theirs: &[u64]) -> String {
        compare(("a", &rounds(ours)), ("b", &rounds(theirs)))
    }

    #[test]
    fn steady_factor_is_given() {
        assert_eq!(
            said(&[2, 2, 2], &[4, 6, 8]),
            "a wakes 3.0 times sooner than b at the median (2.0 to 4.0 times over the rounds)"
        );
        assert!(said(&[4, 6, 8], &[2, 2, 2]).starts_with("b wakes 3.0 times sooner than a"));
    }

    fn said_of(ours: &[(f64, f64)], theirs: &[(f64, f64)]) -> String {
        let mut conclusions = Conclusions::default();
        for _ in 0..2 {
            conclusions.compare(&Ratio {
                what: "time",
                ours: ("a", ours),
                theirs: ("b", theirs),
            });
        }
        conclusions.all().swap_remove(0)
    }

    #[test]
    fn a_ratio_needs_rounds_that_agree_on_a_quiet_machine() {
        let (one, two) = ([(1.0, 0.0); 3], [(2.0, 0.05); 3]);
        assert_eq!(
            said_of(&one, &two),
            "time: b has 2.0 times that of a (2.0 to 2.0 over the rounds)."
        );
        assert!(said_of(&two, &one).starts_with("time: a has 2.0 times that of b"));
        assert_eq!(
            said_of(&one[..2], &two),
            "2 comparison(s) allow no conclusion: there were fewer than 3 rounds."
        );
        let mixed = [(2.0, 0.0), (0.5, 0.0), (2.0, 0.0)];
        assert!(said_of(&one, &mixed).contains("neither is below"));
        let noisy = [(2.0, 0.0), (2.0, 0.3), (2.0, 0.0)];
        assert_eq!(
            said_of(&one, &noisy),
            "2 comparison(s) allow no conclusion: others took up to 30 % of the cores meanwhile."
        );
    }

    #[test]
    fn a_reason_is_given_where_ours_is_more() {
        let said = |ours, theirs| {
            let mut conclusions = Conclusions::default();
            let figures = Ratio {
                what: "time",
                ours: ("a", &[(ours, 0.0); 3]),
                theirs: ("b", &[(theirs, 0.0); 3]),
            };
            conclusions.compare_with_reason(&figures, "It does more.");
            conclusions.all().swap_remove(0)
        };
        assert!(said(2.0, 1.0).ends_with("over the rounds). It does more."));
        assert!(!said(1.0, 2.0).contains("It does more."));
    }

    #[test]
    fn mixed_rounds_give_no_conclusion() {
        assert!(said(&[2, 4, 2], &[4, 2, 4]).contains("no conclusion"));
        assert!(said(&[2], &[4]).contains("no conclusion"));
    }

    #[test]
    fn wide_spread_gives_no_factor() {
        assert!(said(&[1, 1, 1], &[2, 2, 50]).contains("varies too much"));
    }
}
