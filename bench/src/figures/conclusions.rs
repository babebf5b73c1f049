// SPDX-License-Identifier: Apache-2.0
//! Conclusions about two contenders that were measured in turn.

use crate::figures::Figures;
use std::fmt::Display;

/// Number of rounds that a conclusion needs.
pub const ROUNDS: usize = 3;

/// Largest part of the machine that other work may take for a conclusion.
pub const QUIET: f64 = 0.1;

/// Prefixes of the names of other projects' caches.
const PEERS: [&str; 4] = ["nginx", "Varnish", "HAProxy", "Traffic Server"];

/// Smallest factor by which a peer is ahead.
const AHEAD: f64 = 1.05;

/// The results of comparisons, in the order in which they were made. Less is better.
#[derive(Default)]
pub struct Conclusions {
    said: Vec<String>,
    /// The results in which a peer has less than Sluice.
    peer_ahead: Vec<String>,
    /// Comparisons of too few rounds.
    few: usize,
    /// Comparisons during which the machine was too busy, and the largest part that other work took.
    noisy: (usize, f64),
}

impl Conclusions {
    /// Adds a sentence without a comparison.
    pub fn say(&mut self, sentence: String) {
        self.said.push(sentence);
    }

    /// Compares a figure of two contenders, round by round. Does nothing if one of them was not measured.
    pub fn compare(
        &mut self,
        what: impl Display,
        ours: (impl Display, Figures),
        theirs: (impl Display, Figures),
    ) {
        self.compare_with_reason(what, ours, theirs, "");
    }

    /// Compares, and adds the reason if Sluice has more.
    pub fn compare_with_reason(
        &mut self,
        what: impl Display,
        ours: (impl Display, Figures),
        theirs: (impl Display, Figures),
        reason: &str,
    ) {
        let rounds = ours.1.len().min(theirs.1.len());
        let foreign = ours.1.most_foreign().max(theirs.1.most_foreign());
        if rounds == 0 {
        } else if rounds < ROUNDS {
            self.few += 1;
        } else if foreign > QUIET {
            self.noisy = (self.noisy.0 + 1, self.noisy.1.max(foreign));
        } else {
            let factors = theirs.1.with(&ours.1, |their, our| their / our);
            let (our_name, their_name) = (ours.0.to_string(), theirs.0.to_string());
            let said = ratio(&what.to_string(), &our_name, &their_name, &factors);
            let ours_is_more = factors.extremes().1 < 1.0;
            let is_peer = PEERS.iter().any(|peer| their_name.starts_with(peer));
            if ours_is_more && is_peer && factors.median().recip() >= AHEAD {
                self.peer_ahead.push(said.clone());
            }
            self.said.push(if ours_is_more && !reason.is_empty() {
                format!("{said} {reason}")
            } else {
                said
            });
        }
    }

    /// Sentences about figures in which a peer has less in every round.
    pub fn peer_ahead(&self) -> &[String] {
        &self.peer_ahead
    }

    /// All sentences; comparisons without a conclusion are summed up in one.
    pub fn all(&self) -> Vec<String> {
        let mut all = self.said.clone();
        if let count @ 1.. = self.few {
            all.push(format!(
                "{count} comparison(s) allow no conclusion: there were fewer than {ROUNDS} rounds."
            ));
        }
        if let (count @ 1.., foreign) = self.noisy {
            all.push(format!(
                "{count} comparison(s) allow no conclusion: other work took at most {:.0} % of the cores meanwhile.",
                foreign * 100.0
            ));
        }
        all
    }
}

/// The conclusion from the rounds of a quiet machine, by `factors`: the ratio of `ours` to `theirs`.
fn ratio(what: &str, ours: &str, theirs: &str, factors: &Figures) -> String {
    let (least, most) = factors.extremes();
    if least < 1.0 && most > 1.0 {
        return format!(
            "{what}, {ours} and {theirs}: no conclusion, neither is below the other in every round."
        );
    }
    let median = factors.median();
    let (low, high, factor, (least, most)) = if least >= 1.0 {
        (ours, theirs, median, (least, most))
    } else {
        (theirs, ours, median.recip(), (most.recip(), least.recip()))
    };
    format!(
        "{what}: {high} has {factor:.1} times that of {low} ({least:.1} to {most:.1} over the rounds)."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(ours: &[(f64, f64)], theirs: &[(f64, f64)], reason: &str) -> String {
        let mut conclusions = Conclusions::default();
        for _ in 0..2 {
            let figures = |rounds: &[(f64, f64)]| rounds.iter().copied().collect::<Figures>();
            conclusions.compare_with_reason(
                "time",
                ("a", figures(ours)),
                ("b", figures(theirs)),
                reason,
            );
        }
        conclusions.all().swap_remove(0)
    }

    #[test]
    fn a_ratio_needs_rounds_that_agree_on_a_quiet_machine() {
        let (one, two) = ([(1.0, 0.0); 3], [(2.0, 0.05); 3]);
        assert_eq!(
            said(&one, &two, ""),
            "time: b has 2.0 times that of a (2.0 to 2.0 over the rounds)."
        );
        assert!(said(&two, &one, "").starts_with("time: a has 2.0 times that of b"));
        assert_eq!(
            said(&one[..2], &two, ""),
            "2 comparison(s) allow no conclusion: there were fewer than 3 rounds."
        );
        let mixed = [(2.0, 0.0), (0.5, 0.0), (2.0, 0.0)];
        assert!(said(&one, &mixed, "").contains("neither is below"));
        let noisy = [(2.0, 0.0), (2.0, 0.3), (2.0, 0.0)];
        assert_eq!(
            said(&one, &noisy, ""),
            "2 comparison(s) allow no conclusion: other work took at most 30 % of the cores meanwhile."
        );
    }

    #[test]
    fn a_peer_is_ahead_where_it_has_less_in_every_round() {
        let figures = |rounds: [f64; 3]| rounds.map(|value| (value, 0.0)).into_iter().collect();
        let mut conclusions = Conclusions::default();
        for (peer, rounds) in [
            ("nginx, lock", [1.0; 3]),
            ("Varnish", [1.0, 3.0, 1.0]),
            ("HAProxy", [1.98; 3]),
            ("Traffic Server", [3.0; 3]),
            ("bare Envoy", [1.0; 3]),
        ] {
            let ours: (&str, Figures) = ("Sluice", figures([2.0; 3]));
            conclusions.compare("time", ours, (peer, figures(rounds)));
        }
        assert_eq!(conclusions.all().len(), 5);
        assert_eq!(
            conclusions.peer_ahead(),
            ["time: Sluice has 2.0 times that of nginx, lock (2.0 to 2.0 over the rounds)."]
        );
    }

    #[test]
    fn a_reason_is_given_where_ours_is_more() {
        let (one, two) = ([(1.0, 0.0); 3], [(2.0, 0.0); 3]);
        assert!(said(&two, &one, "It does more.").ends_with("over the rounds). It does more."));
        assert!(!said(&one, &two, "It does more.").contains("It does more."));
    }
}
