// SPDX-License-Identifier: Apache-2.0
//! The numbers of the newest purges that cover a URL or a set of URLs, for each kind.

use crate::policy::purge::{Kind, Record, Scope};

/// All kinds, the strongest first.
pub(in crate::purge) const KINDS: [Kind; 3] = [Kind::Hard, Kind::Soft, Kind::Changed];

/// Numbers of the newest purges; 0 if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generations {
    /// Number of the newest hard purge.
    pub hard: u64,
    /// Number of the newest soft purge.
    pub soft: u64,
    /// Number of the newest change by an unsafe request.
    pub changed: u64,
}

impl Generations {
    /// Collects the numbers that `number` returns for each kind.
    pub(in crate::purge) fn by_kind(number: impl Fn(Kind) -> u64) -> Self {
        Self {
            hard: number(Kind::Hard),
            soft: number(Kind::Soft),
            changed: number(Kind::Changed),
        }
    }

    /// Returns the numbers for a single purge.
    pub(in crate::purge) fn of(kind: Kind, number: u64) -> Self {
        Self::by_kind(|each| if each == kind { number } else { 0 })
    }

    /// Returns the number of one kind.
    pub(in crate::purge) const fn get(self, kind: Kind) -> u64 {
        match kind {
            Kind::Hard => self.hard,
            Kind::Soft => self.soft,
            Kind::Changed => self.changed,
        }
    }

    /// Returns the greater of both numbers, for each kind.
    #[must_use]
    pub(in crate::purge) fn raised(self, other: Self) -> Self {
        Self::by_kind(|kind| self.get(kind).max(other.get(kind)))
    }

    /// Returns the greatest number of a narrower purge of that kind that has no effect beside these purges.
    pub(in crate::purge) fn covered(self, kind: Kind) -> u64 {
        match kind {
            Kind::Hard => self.hard,
            Kind::Soft => self.hard.max(self.soft),
            Kind::Changed => self.newest(),
        }
    }

    /// Returns the numbers that `wider` does not cover.
    #[must_use]
    pub(in crate::purge) fn beside(self, wider: Self) -> Self {
        Self::by_kind(|kind| match self.get(kind) {
            number if number > wider.covered(kind) => number,
            _ => 0,
        })
    }

    /// Returns the numbers that a stronger and newer purge does not replace.
    #[must_use]
    pub(in crate::purge) fn in_effect(self) -> Self {
        let soft = if self.soft < self.hard { 0 } else { self.soft };
        let stronger = self.hard.max(self.soft);
        let changed = if self.changed <= stronger {
            0
        } else {
            self.changed
        };
        Self {
            soft,
            changed,
            ..self
        }
    }

    /// Returns the greatest number.
    pub(in crate::purge) fn newest(self) -> u64 {
        self.hard.max(self.soft).max(self.changed)
    }

    /// Returns the number of the newest purge after which the stored response has to be revalidated; 0 if there is
    /// none.
    pub fn revalidates(self) -> u64 {
        self.soft.max(self.changed)
    }

    /// Whether all numbers are 0.
    pub(in crate::purge) fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Returns the purges as records of `scope`.
    pub(in crate::purge) fn records(self, scope: Scope) -> impl Iterator<Item = Record> {
        let numbers = KINDS.map(|kind| (kind, self.get(kind))).into_iter();
        let numbers = numbers.filter(|(_, number)| *number > 0);
        numbers.map(move |(kind, number)| Record {
            number,
            kind,
            scope: scope.clone(),
        })
    }
}
