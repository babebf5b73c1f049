// SPDX-License-Identifier: Apache-2.0
//! The second origin of a site, which gets the requests that the first one fails.

use std::time::Duration;

use jiff::civil::Date;
use sluice_core::policy::forms::duration;

use super::credentials::Credentials;
use crate::origin::Origin;

/// The second origin of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failover {
    /// The second origin.
    pub origin: Origin,
    /// The credentials for a bucket.
    pub credentials: Credentials,
    /// The times that decide when it is asked, and how long its responses are fresh.
    pub times: FailoverTimes,
    /// Whether it also gets requests with a client's `Authorization` or `Cookie`.
    pub passes_client_credentials: bool,
    /// Whether it is also asked for objects that the first bucket lacks.
    pub on_missing: Option<OnMissing>,
}

/// The question for objects that the first bucket lacks, because it is being filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnMissing {
    /// The day from which `sluice check` reminds of the end of the move.
    pub until: Option<Date>,
}

/// The times of a failover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailoverTimes {
    /// Greatest freshness lifetime of a response of the second origin, in whole seconds.
    pub ttl: Duration,
    /// Bound on the time for a connection to the first origin.
    pub connect_timeout: Duration,
    /// Time without a response after which the first origin counts as failed. It bounds the second origin as well.
    pub after_silence: Duration,
}

impl Default for FailoverTimes {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(1),
            after_silence: Duration::from_secs(5),
        }
    }
}

impl Failover {
    /// The origins that can have only a second origin of the same kind. A URL of an HTTP server may be no key of a
    /// bucket, and a bucket refuses its signature.
    pub fn suits(first: &Origin, second: &Origin) -> bool {
        matches!(first, Origin::Bucket(_)) || matches!(second, Origin::Http(_))
    }

    /// Whether it is asked for objects that the first bucket lacks.
    pub const fn asks_for_missing(&self) -> bool {
        self.on_missing.is_some()
    }

    /// Whether equal entity tags of both origins mean equal bytes.
    pub fn shares_validators(&self, first: &Origin) -> bool {
        matches!(
            (first, &self.origin),
            (Origin::Bucket(_), Origin::Bucket(_))
        )
    }
}

/// The description of the origins that [`Failover::suits`] accepts.
pub const EXPECTED_SECOND: &str =
    "http://HOST[:PORT] or https://HOST[:PORT], because the first origin is not a bucket";

/// Reads the freshness lifetime of a second origin's responses: whole seconds.
pub fn ttl(text: &str) -> Option<Duration> {
    let accepted = Duration::from_secs(1)..=Duration::from_secs(24 * 60 * 60);
    let time = duration::parse(text).filter(|time| accepted.contains(time));
    time.filter(|time| time.subsec_nanos() == 0)
}

/// The description of the texts that [`ttl`] accepts.
pub const EXPECTED_TTL: &str = "a duration of whole seconds from 1s to 24h, such as 60s";

/// Reads a bound on the patience with an origin.
pub fn patience(text: &str) -> Option<Duration> {
    let accepted = Duration::from_millis(50)..=Duration::from_secs(60);
    duration::parse(text).filter(|time| accepted.contains(time))
}

/// The description of the texts that [`patience`] accepts.
pub const EXPECTED_PATIENCE: &str = "a duration from 50ms to 60s, such as 5s";

/// Reads a day, such as `2027-01-31`.
pub fn day(text: &str) -> Option<Date> {
    text.parse().ok().filter(|_| text.len() == 10)
}

/// The description of the texts that [`day`] accepts.
pub const EXPECTED_DAY: &str = "a day such as 2027-01-31";
/// The description of the origins for which missing objects can be asked for elsewhere.
pub const EXPECTED_MOVE: &str = "false, because the first origin is not a bucket";
/// The description of the settings beside a day.
pub const EXPECTED_REMINDER: &str = "no day, or on_missing to be true";
