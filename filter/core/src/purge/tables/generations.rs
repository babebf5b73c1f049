// SPDX-License-Identifier: Apache-2.0
//! The numbers of the newest purges of something, by their kinds.

use crate::policy::purge::{Kind, Record, Scope};

/// All kinds, the strongest first.
pub(in crate::purge) const KINDS: [Kind; 3] = [Kind::Hard, Kind::Soft, Kind::Changed];

/// The newest purges that cover a URL; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generations {
    /// Number of the newest hard one.
    pub hard: u64,
    /// Number of the newest soft one.
    pub soft: u64,
    /// Number of the newest change by an unsafe request.
    pub changed: u64,
}

impl Generations {
    /// The numbers that `number` gives for each kind.
    pub(in crate::purge) fn by_kind(number: impl Fn(Kind) -> u64) -> Self {
        Self {
            hard: number(Kind::Hard),
            soft: number(Kind::Soft),
            changed: number(Kind::Changed),
        }
    }

    /// One purge alone.
    pub(in crate::purge) fn of(kind: Kind, number: u64) -> Self {
        Self::by_kind(|each| if each == kind { number } else { 0 })
    }

    /// The number of one kind.
    pub(in crate::purge) const fn get(self, kind: Kind) -> u64 {
        match kind {
            Kind::Hard => self.hard,
            Kind::Soft => self.soft,
            Kind::Changed => self.changed,
        }
    }

    /// The newer of both, for each kind.
    #[must_use]
    pub(in crate::purge) fn raised(self, other: Self) -> Self {
        Self::by_kind(|kind| self.get(kind).max(other.get(kind)))
    }

    /// The greatest number of a narrower purge of that kind that says nothing beside these.
    pub(in crate::purge) fn covered(self, kind: Kind) -> u64 {
        match kind {
            Kind::Hard => self.hard,
            Kind::Soft => self.hard.max(self.soft),
            Kind::Changed => self.newest(),
        }
    }

    /// Without what `wider` covers anyhow.
    #[must_use]
    pub(in crate::purge) fn beside(self, wider: Self) -> Self {
        Self::by_kind(|kind| match self.get(kind) {
            number if number > wider.covered(kind) => number,
            _ => 0,
        })
    }

    /// Without those that a stronger and newer one has overtaken.
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

    /// The newest of all.
    pub(in crate::purge) fn newest(self) -> u64 {
        self.hard.max(self.soft).max(self.changed)
    }

    /// The newest purge after which the stored response has to be revalidated; 0 is none.
    pub fn revalidates(self) -> u64 {
        self.soft.max(self.changed)
    }

    /// Whether nothing covers it.
    pub(in crate::purge) fn is_none(self) -> bool {
        self == Self::default()
    }

    /// These as records of `scope`.
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
