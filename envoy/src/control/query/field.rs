// SPDX-License-Identifier: Apache-2.0
//! The fields of a request that a query can name.

use sluice_core::policy::forms::duration;
use sluice_core::size;

use crate::control::answers::Decision;

/// The fields, in the order of the help.
pub const FIELDS: [(&str, Field); 12] = [
    ("site", Field::Text(|one| one.site.as_deref())),
    ("host", Field::Text(|one| Some(&one.host))),
    ("method", Field::Text(|one| Some(&one.method))),
    ("path", Field::Text(|one| Some(&one.path))),
    (
        "status",
        Field::Number(Unit::Status, |one| one.status.map(u64::from)),
    ),
    ("result", Field::Text(|one| one.result.as_deref())),
    (
        "duration",
        Field::Number(Unit::Duration, |one| Some(one.duration_ms)),
    ),
    ("waited", Field::Number(Unit::Duration, |one| one.waited_ms)),
    ("origin", Field::Number(Unit::Duration, |one| one.origin_ms)),
    ("bytes", Field::Number(Unit::Bytes, |one| Some(one.bytes))),
    ("not_stored", Field::Text(|one| one.not_stored.as_deref())),
    ("request_id", Field::Text(|one| one.request_id.as_deref())),
];

/// A field: its kind, and the function that reads it.
#[derive(Clone, Copy, Debug)]
pub enum Field {
    /// A text.
    Text(fn(&Decision) -> Option<&str>),
    /// A number.
    Number(Unit, fn(&Decision) -> Option<u64>),
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A status code.
    Status,
    /// Milliseconds.
    Duration,
    /// Bytes.
    Bytes,
}

impl Field {
    /// The field with this name.
    pub fn find(name: &str) -> Option<Self> {
        let found = FIELDS.iter().find(|(known, _)| *known == name);
        found.map(|(_, field)| *field)
    }
}

impl Unit {
    /// The texts that [`Self::parse`] accepts.
    pub const fn accepted(self) -> &'static str {
        match self {
            Self::Status => "a status from 100 to 599",
            Self::Duration => duration::EXPECTED,
            Self::Bytes => "a number of bytes, plain or with KiB, MiB, GiB or TiB",
        }
    }

    /// Reads a number with its unit.
    pub fn parse(self, text: &str) -> Option<u64> {
        match self {
            Self::Status => text.parse().ok().filter(|code| (100..600).contains(code)),
            Self::Duration => u64::try_from(duration::parse(text)?.as_millis()).ok(),
            Self::Bytes if text == "0" => Some(0),
            Self::Bytes => size::parse(text),
        }
    }
}
