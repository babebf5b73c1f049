// SPDX-License-Identifier: Apache-2.0
//! Times to live by status, as the document writes them.

use std::time::Duration;

use serde_json::Value;

use super::error::PolicyError;
use super::form::{Form, Kind, Seconds, object, one_of, read_within};

/// What a table that does not say gives a status.
const DEFAULT_TTL: Duration = Duration::from_secs(1);
/// Statuses whose responses are there to stay.
const LASTING: [u16; 4] = [200, 203, 301, 308];

/// Time to live by status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TtlTable {
    /// By exact status, sorted by status.
    pub exact: Vec<(u16, Duration)>,
    /// By class: index 0 is 1xx, 4 is 5xx.
    pub class: [Option<Duration>; 5],
    /// For all others.
    pub default: Duration,
}

/// The table of a policy that has none.
pub(super) fn default_ttl() -> TtlTable {
    let lasting = LASTING.map(|status| (status, Duration::from_secs(3_600)));
    TtlTable {
        exact: lasting.into_iter().chain([(404, DEFAULT_TTL)]).collect(),
        class: [None; 5],
        default: DEFAULT_TTL,
    }
}

impl Form<Self> for TtlTable {
    fn read(value: &Value, kind: Kind) -> Result<Self, PolicyError> {
        let entries = TtlEntries::read(value, kind)?;
        Ok(Self {
            exact: entries.exact,
            class: entries.class,
            default: entries.default.unwrap_or(DEFAULT_TTL),
        })
    }
}

/// What a rule says of the table: a duration for the statuses that last, or entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RuleTtl(TtlEntries);

impl RuleTtl {
    /// The table of the rule; `base` is that of the policy.
    pub(super) fn over(self, base: &TtlTable) -> TtlTable {
        let TtlEntries {
            mut exact,
            class,
            default,
        } = self.0;
        let Some(default) = default else {
            let of_class = |status: u16| usize::from(status / 100).checked_sub(1);
            let kept = base.exact.iter().filter(|(status, _)| {
                let of_class = of_class(*status).and_then(|index| class.get(index));
                !matches!(of_class, Some(Some(_)))
                    && !exact.iter().any(|(listed, _)| listed == status)
            });
            let kept: Vec<_> = kept.copied().collect();
            exact.extend(kept);
            exact.sort_unstable();
            let mut classes = base.class;
            for (ours, theirs) in classes.iter_mut().zip(class) {
                *ours = theirs.or(*ours);
            }
            return TtlTable {
                exact,
                class: classes,
                default: base.default,
            };
        };
        TtlTable {
            exact,
            class,
            default,
        }
    }
}

impl Form<Self> for RuleTtl {
    fn read(value: &Value, kind: Kind) -> Result<Self, PolicyError> {
        if value.is_object() {
            return TtlEntries::read(value, kind).map(Self);
        }
        let ttl = Seconds::read(value, kind)?;
        Ok(Self(TtlEntries {
            exact: LASTING.map(|status| (status, ttl)).into(),
            ..TtlEntries::default()
        }))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TtlEntries {
    exact: Vec<(u16, Duration)>,
    class: [Option<Duration>; 5],
    default: Option<Duration>,
}

impl TtlEntries {
    fn read(value: &Value, kind: Kind) -> Result<Self, PolicyError> {
        let mut entries = Self::default();
        for (key, value) in object(value)? {
            let ttl = read_within::<_, Seconds>(key, value, kind)?;
            match TtlKey::parse(key) {
                Some(TtlKey::Default) => entries.default = Some(ttl),
                Some(TtlKey::Exact(status)) => {
                    let exact = &mut entries.exact;
                    let place = exact.partition_point(|(before, _)| *before < status);
                    exact.insert(place, (status, ttl));
                }
                Some(TtlKey::Class(class)) => {
                    if let Some(slot) = entries.class.get_mut(class) {
                        *slot = Some(ttl);
                    }
                }
                None => {
                    let known = ["a status from 100 to 599", "a class such as 5xx", "default"];
                    let message = format!("not a status, expected {}", one_of(&known));
                    return Err(PolicyError::new(key, message));
                }
            }
        }
        Ok(entries)
    }
}

enum TtlKey {
    Exact(u16),
    /// 0 is 1xx.
    Class(usize),
    Default,
}

impl TtlKey {
    fn parse(key: &str) -> Option<Self> {
        match key.as_bytes() {
            b"default" => Some(Self::Default),
            [class @ b'1'..=b'5', b'x', b'x'] => Some(Self::Class(usize::from(class - b'1'))),
            [b'1'..=b'5', b'0'..=b'9', b'0'..=b'9'] => key.parse().ok().map(Self::Exact),
            _ => None,
        }
    }
}
