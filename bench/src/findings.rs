// SPDX-License-Identifier: Apache-2.0
//! What may be said of two contenders that were measured in turn, and what may not.

use crate::sample::{Sample, extremes};

/// A factor that varies more than this between rounds is not given as one figure.
const STEADY: f64 = 4.0;

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
    if rounds < 3 {
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
