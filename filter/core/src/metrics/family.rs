// SPDX-License-Identifier: Apache-2.0
//! Metric families: the names, labels and help texts under which Prometheus sees the metrics of the filter.
//!
//! The names follow <https://prometheus.io/docs/practices/naming/>: counters end in `_total`, times are in seconds, and
//! metrics that add up are one family with a label.

use super::{Metric, MetricKind};
use crate::freshness::UncacheableReason;

/// A metric family of Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The name.
    pub name: &'static str,
    /// The kind of all its members.
    pub kind: MetricKind,
    /// Help text, in one sentence.
    pub help: &'static str,
}

impl Family {
    /// Creates the family of a gauge.
    pub const fn gauge(name: &'static str, help: &'static str) -> Self {
        let kind = MetricKind::Gauge;
        Self { name, kind, help }
    }
}

/// A metric as a member of its family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyMember {
    /// The family.
    pub family: Family,
    /// The name and the value of the label that distinguishes the member. `None` for the only member of a family.
    pub label: Option<(&'static str, &'static str)>,
    /// The number by which the value in Envoy's statistics is divided. 1,000 for a time, because Envoy counts
    /// milliseconds.
    pub divisor: u32,
}

/// A family of several metrics of one kind.
struct LabelledFamily {
    name: &'static str,
    label: &'static str,
    help: &'static str,
    members: &'static [(Metric, &'static str)],
}

/// The families of several metrics, except the reasons for which a response is not stored.
const LABELLED: &[LabelledFamily] = &[
    LabelledFamily {
        name: "sluice_requests_total",
        label: "result",
        help: "Requests of clients, by result.",
        members: &[
            (Metric::RequestsHit, "hit"),
            (Metric::RequestsMiss, "miss"),
            (Metric::RequestsRevalidated, "revalidated"),
            (Metric::RequestsStale, "stale"),
            (Metric::RequestsCollapsed, "collapsed"),
            (Metric::FollowersFailed, "failed"),
            (Metric::RequestsHitForMiss, "hit_for_miss"),
            (Metric::RequestsPassed, "passed"),
            (Metric::RequestsRejected, "rejected"),
        ],
    },
    LabelledFamily {
        name: "sluice_access_admitted_total",
        label: "check",
        help: "Requests of clients to sites with access rules that were admitted, by the check that they passed.",
        members: &[
            (Metric::AccessByExcept, "except"),
            (Metric::AccessByAllow, "allow"),
            (Metric::AccessByAddress, "address"),
            (Metric::AccessBySignature, "signed"),
            (Metric::AccessByPassword, "basic"),
            (Metric::AccessByToken, "jwt"),
            (Metric::AccessByForward, "forward"),
        ],
    },
    LabelledFamily {
        name: "sluice_access_refused_total",
        label: "check",
        help: "Requests of clients to sites with access rules that were refused, by the check that they failed.",
        members: &[
            (Metric::AccessRefusedByAllow, "allow"),
            (Metric::AccessRefusedBySignature, "signed"),
            (Metric::AccessRefusedByPassword, "basic"),
            (Metric::AccessRefusedByToken, "jwt"),
            (Metric::AccessRefusedByForward, "forward"),
            (Metric::AccessRefusedWithoutProof, "none"),
        ],
    },
    LabelledFamily {
        name: "sluice_access_failures_total",
        label: "check",
        help: "Requests of clients to sites with access rules that were answered with 503 because a check gave no answer.",
        members: &[
            (Metric::AccessTokenFailures, "jwt"),
            (Metric::AccessForwardFailures, "forward"),
        ],
    },
    LabelledFamily {
        name: "sluice_slices_total",
        label: "result",
        help: "Slices of objects, by result.",
        members: &[
            (Metric::SlicesHit, "hit"),
            (Metric::SlicesMissed, "miss"),
            (Metric::SlicesCollapsed, "collapsed"),
            (Metric::SlicesChanged, "changed"),
        ],
    },
    LabelledFamily {
        name: "sluice_slice_bytes_total",
        label: "result",
        help: "Bytes of slices that a response needed, by result. A range may need a part of its slices only.",
        members: &[
            (Metric::SliceBytesHit, "hit"),
            (Metric::SliceBytesMissed, "miss"),
            (Metric::SliceBytesCollapsed, "collapsed"),
        ],
    },
    LabelledFamily {
        name: "sluice_first_byte_seconds",
        label: "result",
        help: "Time from a client's request to the first byte of its response, by result.",
        members: &[
            (Metric::FirstByteHit, "hit"),
            (Metric::FirstByteCollapsed, "collapsed"),
            (Metric::FirstByteMiss, "miss"),
        ],
    },
    LabelledFamily {
        name: "sluice_bucket_errors_total",
        label: "reason",
        help: "Errors of the bucket after the last retry, by reason.",
        members: &[
            (Metric::BucketThrottled, "throttled"),
            (Metric::BucketFailed, "failed"),
            (Metric::BucketRegionWrong, "region_wrong"),
            (Metric::BucketCredentialsRefused, "credentials_refused"),
            (Metric::BucketClockSkewed, "clock_skewed"),
            (Metric::BucketMissing, "missing"),
            (Metric::BucketRefused, "refused"),
        ],
    },
    LabelledFamily {
        name: "sluice_ignored_events_total",
        label: "reason",
        help: "Events of a bucket that purge nothing, by reason.",
        members: &[
            (Metric::EventsRead, "read"),
            (Metric::EventsUnchanged, "unchanged"),
            (Metric::EventsUnknown, "unknown"),
            (Metric::EventsElsewhere, "elsewhere"),
        ],
    },
    LabelledFamily {
        name: "sluice_created_objects_total",
        label: "result",
        help: "Written objects that purge.on_created is for, by result.",
        members: &[
            (Metric::CreatedFetched, "fetched"),
            (Metric::CreatedSkipped, "skipped"),
            (Metric::CreatedFailed, "failed"),
        ],
    },
    LabelledFamily {
        name: "sluice_sns_messages_total",
        label: "result",
        help: "Messages of Amazon SNS, by result.",
        members: &[
            (Metric::SnsNotifications, "notification"),
            (Metric::SnsConfirmations, "confirmation"),
            (Metric::SnsRefused, "refused"),
            (Metric::SnsUnverified, "unverified"),
        ],
    },
];

/// The metrics that have another name in Prometheus, as the only member of their family.
const RENAMED: &[(Metric, &str)] = &[
    (Metric::OriginFetches, "sluice_origin_requests_total"),
    (Metric::RequestsSubstituted, "sluice_substitutions_total"),
    (Metric::ParkedNow, "sluice_waiting_requests"),
    (Metric::FlightsNow, "sluice_inflight_keys"),
    (Metric::HintsNow, "sluice_known_keys"),
    (Metric::SliceIndexesNow, "sluice_slice_indexes"),
    (Metric::SlicedNow, "sluice_sliced_responses"),
    (Metric::HotObjectsNow, "sluice_hot_objects"),
    (Metric::HotBytesNow, "sluice_hot_bytes"),
    (Metric::OriginFirstByte, "sluice_origin_first_byte_seconds"),
    (Metric::WaitMilliseconds, "sluice_coalescing_wait_seconds"),
];

/// The family of the reasons for which a response is not stored.
const NOT_STORED: Family = Family {
    name: "sluice_not_stored_total",
    kind: MetricKind::Counter,
    help: "Responses for clients that were not stored, by reason.",
};

impl Metric {
    /// The metric in Prometheus.
    pub fn in_family(self) -> FamilyMember {
        self.labelled()
            .or_else(|| self.reason())
            .unwrap_or_else(|| self.alone())
    }

    fn labelled(self) -> Option<FamilyMember> {
        let value_in = |family: &LabelledFamily| {
            let members = family.members.iter();
            let mut values =
                members.filter_map(|(metric, value)| (*metric == self).then_some(*value));
            values.next()
        };
        LABELLED.iter().find_map(|family| {
            let label = (family.label, value_in(family)?);
            let (name, help) = (family.name, family.help);
            let kind = self.kind();
            let family = Family { name, kind, help };
            Some(FamilyMember::labelled(family, label))
        })
    }

    fn reason(self) -> Option<FamilyMember> {
        let mut reasons = UncacheableReason::ALL.iter();
        let reason = reasons.find(|reason| Self::of_reason(**reason) == self)?;
        let label = ("reason", reason.name());
        Some(FamilyMember::labelled(NOT_STORED, label))
    }

    fn alone(self) -> FamilyMember {
        let renamed = RENAMED.iter().find(|(metric, _)| *metric == self);
        let counted = match self.kind() {
            MetricKind::Counter => self.total(),
            MetricKind::Gauge | MetricKind::Histogram => self.name(),
        };
        FamilyMember {
            family: Family {
                name: renamed.map_or(counted, |(_, name)| name),
                kind: self.kind(),
                help: self.help(),
            },
            label: None,
            divisor: divisor(self.kind()),
        }
    }
}

impl FamilyMember {
    const fn labelled(family: Family, label: (&'static str, &'static str)) -> Self {
        Self {
            family,
            label: Some(label),
            divisor: divisor(family.kind),
        }
    }
}

/// The number by which the values of that kind are divided. All histograms are of times.
const fn divisor(kind: MetricKind) -> u32 {
    match kind {
        MetricKind::Histogram => 1_000,
        MetricKind::Counter | MetricKind::Gauge => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    fn members() -> impl Iterator<Item = FamilyMember> {
        Metric::ALL.iter().map(|metric| metric.in_family())
    }

    #[test]
    fn no_two_metrics_are_the_same_member() {
        let mut seen = HashSet::new();
        for member in members() {
            let key = (member.family.name, member.label);
            assert!(seen.insert(key), "{key:?}");
        }
    }

    #[test]
    fn the_members_of_a_family_agree_on_kind_help_and_label() {
        let mut families: HashMap<&str, FamilyMember> = HashMap::new();
        for member in members() {
            let first = families.entry(member.family.name).or_insert(member);
            assert_eq!(first.family, member.family);
            let name = |member: &FamilyMember| member.label.map(|(name, _)| name);
            assert_eq!(name(first), name(&member));
        }
    }

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        for member in members() {
            let Family { name, kind, .. } = member.family;
            assert!(name.starts_with("sluice_"), "{name}");
            match kind {
                MetricKind::Counter => assert!(name.ends_with("_total"), "{name}"),
                MetricKind::Gauge => assert!(!name.ends_with("_total"), "{name}"),
                MetricKind::Histogram => assert!(name.ends_with("_seconds"), "{name}"),
            }
        }
    }
}
