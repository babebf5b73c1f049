// SPDX-License-Identifier: Apache-2.0
//! A budget that time gives back within a minute.

use crate::workers::Millis;

/// The time in which the whole budget returns.
const PERIOD_MILLIS: u128 = 60_000;

/// The part of a budget that is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinuteBudget {
    /// The amount that was used, less the amount that has returned with time.
    pub used: u64,
    /// Time up to which the used amount has returned.
    pub since: Millis,
}

impl MinuteBudget {
    /// Whether `amount` fits into a budget of `most` in a minute.
    pub fn has_room(&mut self, amount: u64, most: u64, now: Millis) -> bool {
        self.give_back(most, now);
        self.used.saturating_add(amount) <= most
    }

    /// Uses `amount`, even beyond the budget.
    pub fn spend(&mut self, amount: u64) {
        self.used = self.used.saturating_add(amount);
    }

    /// Gives back an amount that was not needed.
    pub fn refund(&mut self, amount: u64) {
        self.used = self.used.saturating_sub(amount);
    }

    fn give_back(&mut self, most: u64, now: Millis) {
        let passed = now.saturating_sub(self.since);
        let back = u128::from(most) * u128::from(passed) / PERIOD_MILLIS;
        if back == 0 {
            return;
        }
        // NB: the time that has not given back a whole unit counts on, however often the budget is asked.
        let counted = (back * PERIOD_MILLIS).div_ceil(u128::from(most));
        let counted = u64::try_from(counted).unwrap_or(passed).min(passed);
        self.since = self.since.saturating_add(counted);
        self.refund(u64::try_from(back).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_gives_the_budget_back_in_a_minute() {
        let mut budget = MinuteBudget::default();
        assert!(budget.has_room(60, 60, 1));
        budget.spend(60);
        assert!(!budget.has_room(1, 60, 900));
        assert!(budget.has_room(1, 60, 1_000));
        assert!(!budget.has_room(31, 60, 30_000));
        assert!(budget.has_room(60, 60, 60_000));
        assert!(!budget.has_room(61, 60, 600_000));
        assert!(!budget.has_room(1, 0, 600_000));
    }

    #[test]
    fn an_amount_beyond_the_budget_takes_longer() {
        let mut budget = MinuteBudget::default();
        budget.spend(2_000);
        assert!(!budget.has_room(1, 1_000, 60_000));
        assert!(budget.has_room(1_000, 1_000, 120_000));
    }

    #[test]
    fn time_gives_back_alike_however_often_it_is_asked() {
        let mut budget = MinuteBudget::default();
        budget.spend(7);
        for now in 0..60_000 {
            budget.has_room(0, 7, now);
        }
        assert!(budget.has_room(6, 7, 60_000));
        // Each unit may take a millisecond longer.
        assert!(budget.has_room(7, 7, 60_007));
    }
}
