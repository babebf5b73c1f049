// SPDX-License-Identifier: Apache-2.0
//! Times to live by status, as the document writes them.

use std::time::Duration;

use serde_json::Value;

use crate::http::status::{is_request_error, must_not_be_stored};
use crate::policy::forms::duration;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind, Seconds, object, one_of};

/// Word for [`Ttl::Origin`].
pub(in crate::policy) const ORIGIN: &str = "origin";
/// Time to live of a status that a bucket's table does not name.
const DEFAULT_TTL: Ttl = Ttl::Fixed(Duration::from_secs(1));
/// Statuses of responses that are meant to last.
const LASTING: [u16; 4] = [200, 203, 301, 308];

/// How long a response is fresh if the origin sends no lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// The time of HTTP's heuristics (RFC 9111, 4.2.2).
    Origin,
    /// A fixed time. Zero: the response is not stored, whatever the origin says.
    Fixed(Duration),
}

impl Ttl {
    /// Reads `origin` or a duration. `more` describes the other values that the field accepts.
    fn read(value: &Value, kind: Kind, more: &str) -> Result<Self, PolicyError> {
        if value == ORIGIN {
            return Ok(Self::Origin);
        }
        if value.as_str().and_then(duration::parse).is_none() {
            let expected = format!("{ORIGIN}, or {}{more}", duration::EXPECTED);
            return Err(PolicyError::unexpected(value, &expected));
        }
        Seconds::read(value, kind).map(Self::Fixed)
    }

    /// Whether it prevents a response from being stored.
    const fn is_none(self) -> bool {
        matches!(self, Self::Fixed(Duration::ZERO))
    }
}

/// Statuses with the same time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statuses {
    /// One status.
    Exact(u16),
    /// All statuses of a class: 5 is 5xx.
    Class(u16),
    /// All other statuses.
    Others,
}

impl Statuses {
    /// Reads a field's name: `404`, `4xx` or `default`.
    fn parse(name: &str) -> Option<Self> {
        match name.as_bytes() {
            b"default" => Some(Self::Others),
            [class @ b'1'..=b'5', b'x', b'x'] => Some(Self::Class((class - b'0').into())),
            [b'1'..=b'5', b'0'..=b'9', b'0'..=b'9'] => name.parse().ok().map(Self::Exact),
            _ => None,
        }
    }

    const fn cover(self, other: Self) -> bool {
        match (self, other) {
            (Self::Exact(one), Self::Exact(other)) | (Self::Class(one), Self::Class(other)) => {
                one == other
            }
            (Self::Class(class), Self::Exact(status)) => status / 100 == class,
            (Self::Others, _) => true,
            (Self::Exact(_), _) | (Self::Class(_), Self::Others) => false,
        }
    }
}

/// Time to live by status: the first entry that covers a status counts. The entries are in the order of [`Statuses`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TtlTable(pub Vec<(Statuses, Ttl)>);

impl TtlTable {
    /// The time to live of a response with this status.
    pub fn of(&self, status: u16) -> Ttl {
        self.entry(status).map_or(DEFAULT_TTL, |(_, ttl)| *ttl)
    }

    /// Whether the table names this status, or its class.
    pub fn names(&self, status: u16) -> bool {
        let entry = self.entry(status);
        entry.is_some_and(|(statuses, _)| *statuses != Statuses::Others)
    }

    fn entry(&self, status: u16) -> Option<&(Statuses, Ttl)> {
        let mut entries = self.0.iter();
        entries.find(|(statuses, _)| statuses.cover(Statuses::Exact(status)))
    }

    /// This table, with the entries of `base` for the statuses that this table does not name.
    pub(in crate::policy) fn over(mut self, base: &Self) -> Self {
        let covered = |one: &Statuses| self.0.iter().any(|(statuses, _)| statuses.cover(*one));
        let kept = base.0.iter().filter(|(statuses, _)| !covered(statuses));
        let kept: Vec<_> = kept.copied().collect();
        self.0.extend(kept);
        self.0.sort_unstable_by_key(|(statuses, _)| *statuses);
        self
    }
}

/// The table for a bucket whose policy has none.
pub(in crate::policy) fn default_ttl() -> TtlTable {
    lasting(Ttl::Fixed(Duration::from_secs(3_600))).over(&TtlTable(vec![
        (Statuses::Exact(404), DEFAULT_TTL),
        (Statuses::Others, DEFAULT_TTL),
    ]))
}

/// The table for an HTTP origin whose policy has none: the origin decides.
pub(in crate::policy) fn origin_decides() -> TtlTable {
    TtlTable(vec![(Statuses::Others, Ttl::Origin)])
}

fn lasting(ttl: Ttl) -> TtlTable {
    TtlTable(LASTING.map(|status| (Statuses::Exact(status), ttl)).into())
}

impl Form<Self> for TtlTable {
    fn read(value: &Value, kind: Kind) -> Result<Self, PolicyError> {
        let others = match kind {
            Kind::Bucket => Self(vec![(Statuses::Others, DEFAULT_TTL)]),
            Kind::Http => origin_decides(),
        };
        RuleTtl::read(value, kind).map(|entries| entries.over(&others))
    }
}

/// Reads the entries of a table, which may be incomplete.
fn read_entries(value: &Value, kind: Kind) -> Result<TtlTable, PolicyError> {
    let mut entries = Vec::new();
    for (name, value) in object(value)? {
        let ttl = Ttl::read(value, kind, "").map_err(|error| error.within(name))?;
        let Some(statuses) = Statuses::parse(name) else {
            let known = ["a status from 100 to 599", "a class such as 5xx", "default"];
            let message = format!("not a status, expected {}", one_of(&known));
            return Err(PolicyError::new(name, message));
        };
        if never_stored(statuses, kind) && !ttl.is_none() {
            let message = format!(
                "{value}: expected 0s or no entry, since no response with that status is stored"
            );
            return Err(PolicyError::new(name, message));
        }
        entries.push((statuses, ttl));
    }
    Ok(TtlTable(entries))
}

/// Whether an entry for these statuses has no effect.
fn never_stored(statuses: Statuses, kind: Kind) -> bool {
    let Statuses::Exact(status) = statuses else {
        return false;
    };
    must_not_be_stored(status) || (kind == Kind::Http && is_request_error(status))
}

/// `origin` for all statuses, a duration for the lasting statuses, or entries.
pub(in crate::policy) struct RuleTtl;

impl Form<TtlTable> for RuleTtl {
    fn read(value: &Value, kind: Kind) -> Result<TtlTable, PolicyError> {
        if value.is_object() {
            return read_entries(value, kind);
        }
        let ttl = Ttl::read(value, kind, ", or a table of both by status")?;
        Ok(match ttl {
            Ttl::Origin => origin_decides(),
            fixed @ Ttl::Fixed(_) => lasting(fixed),
        })
    }
}
