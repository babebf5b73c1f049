// SPDX-License-Identifier: Apache-2.0
//! The sections `store` and `cache`: what is stored, and for how long.

use std::time::Duration;

use crate::http::caching::targeted::SURROGATE_CONTROL;
use crate::policy::forms::form::{AtLeast, Bytes, Seconds, Whole, words};
use crate::policy::forms::names::HeaderName;
use crate::policy::forms::section::section;
use crate::policy::sections::rules::Rule;
use crate::policy::sections::ttl::{TtlTable, default_ttl, origin_decides};

/// Largest size that survives a JSON number of Envoy's, a double.
pub(in crate::policy) const MAX_BYTES: u64 = 1 << 53;

/// What is stored, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    /// How responses are cached and shown for whose path there is no rule.
    pub default: Rule,
    /// Lower-case names of the fields that come before `Cache-Control` and `Expires`, the first first.
    pub targeted_fields: Vec<String>,
    /// How much of the time since its `Last-Modified` a response is fresh where the origin says nothing else, of a status
    /// whose `ttl` is the origin's.
    pub heuristic_percent: u64,
    /// For how long at most.
    pub heuristic_max: Duration,
    /// Whether the origin also fails, as far as what is stored goes, with a 404 or a 410.
    pub stale_if_missing: bool,
    /// How long the origin may be silent before what may be served where it fails is served.
    pub stale_if_error_timeout: Duration,
    /// How long the origin is left alone with a key that is served stale, without the random part.
    pub retry_interval: Duration,
    /// What `Set-Cookie` means. It is removed only from what is stored.
    pub set_cookie: SetCookie,
    /// For how long a key whose response could not be stored is not coalesced.
    pub hit_for_miss: Duration,
    /// Larger objects pass through.
    pub max_object_bytes: u64,
}

/// What becomes of a response with `Set-Cookie`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetCookie {
    /// It goes on, and is not stored.
    Pass,
    /// The header is removed from what is stored.
    Strip,
    /// It is stored with the header if it is said to be for all.
    Store,
}

words!(SetCookie { Pass = "pass", Strip = "strip", Store = "store" });

section! {
    /// The store of responses.
    pub(in crate::policy) struct Store {
        /// The largest object that is stored, in bytes. Envoy's cache reads on however slowly a
        /// client takes an object, so each slow client may hold as much in memory.
        max_object_bytes: u64 as Bytes<1, MAX_BYTES> = 16 << 20,
    }
}

section! {
    /// What is stored, and for how long.
    pub(in crate::policy) struct Cache {
        /// How long a response is fresh where the origin does not say: a duration for 200, 203, 301
        /// and 308; or origin for all statuses; or a table of both by status (200), class (5xx) or
        /// default. A duration is whole seconds, and for a 5xx also the most that the origin can
        /// say; 0s: not stored, whatever the origin says. origin: a part of the time since
        /// Last-Modified, see heuristic_percent; without Last-Modified the response is not stored.
        /// Default: for a bucket 1h for 200, 203, 301 and 308, else 1s; for an HTTP origin origin.
        /// HTTP origin: a duration for default counts for 200, 203, 204, 300, 301, 308, 404 and 410
        /// only. An entry for a status that is never stored can only be 0s: 428, 429, 431, 511, and
        /// of an HTTP origin each error that the request itself may have caused.
        ttl: TtlTable = origin_decides(); bucket: default_ttl(),
        /// Whether the origin's targeted fields, Cache-Control and Expires count. Where present,
        /// they win over the policy.
        honor_cache_control: bool = true,
        /// Response headers that win over Cache-Control and Expires; the first that is present and
        /// valid counts. They are targeted fields as in RFC 9213, and surrogate-control, which
        /// clients never see.
        targeted_fields: Vec<String> as Vec<HeaderName> =
            ["cdn-cache-control", SURROGATE_CONTROL].map(str::to_owned).into(),
        /// How many percent of the time since its Last-Modified a response is fresh whose ttl is
        /// origin, if the origin says nothing else (RFC 9111, 4.2.2): of a 200, 203, 204, 300, 301,
        /// 308, 404 or 410, or with Cache-Control: public. 0: such a response is not stored.
        heuristic_percent: u64 as Whole<0, 100> = 10,
        /// For how long at most. Whole seconds.
        heuristic_max: Duration as Seconds = Duration::from_secs(3_600),
        /// How long after its time to live a response with a status below 400 is served while one
        /// request in the background refreshes it, where the origin does not say. Whole seconds.
        /// Default: 60s for a bucket, 0s for an HTTP origin.
        stale_while_revalidate: Duration as Seconds = Duration::ZERO; bucket: Duration::from_secs(60),
        /// How long after its time to live a response with a status below 500 is served while the
        /// origin fails, where the origin does not say. Whole seconds. Default: 1d for a bucket, 10m
        /// for an HTTP origin.
        stale_if_error: Duration as Seconds = Duration::from_secs(600); bucket: Duration::from_secs(86_400),
        /// Whether stale_if_error also counts for a 404 or a 410, for an origin that may lose sight of
        /// what it has. A purge, a bucket's event or an unsafe request ends that: then the 404 counts.
        stale_if_missing: bool = false,
        /// How long the origin may be silent before a stale response is served as if the origin had
        /// failed. Shorter than coalesce.max_wait, or waiting requests would go on by themselves
        /// before.
        stale_if_error_timeout: Duration as AtLeast<1> = Duration::from_secs(4),
        /// The least time between two requests to the origin for a key that is served stale; up to
        /// half of it is added at random.
        retry_interval: Duration as AtLeast<1> = Duration::from_secs(2),
        /// How a response with Set-Cookie is treated. pass: it goes on as it is and is not stored.
        /// strip: Set-Cookie is removed from a response that could be stored without it, and that
        /// is stored. store: a response that says public or s-maxage is stored with its Set-Cookie,
        /// which everybody gets; others go on as with pass.
        set_cookie: SetCookie = SetCookie::Pass,
        /// How long requests for a key whose responses are not stored go on without waiting for each
        /// other at most. The first time is a second, and each one after it twice as long. Once a
        /// second one of these requests sees whether its response is stored. A request with headers
        /// beside its key counts from the second such response in a row on.
        hit_for_miss: Duration as AtLeast<1> = Duration::from_secs(120),
    }
}

impl Cache {
    /// The policy with that bound on objects.
    pub(in crate::policy) fn compile(self, max_object_bytes: u64) -> CachePolicy {
        CachePolicy {
            default: Rule {
                ttl: self.ttl,
                honor_cache_control: self.honor_cache_control,
                stale_while_revalidate: self.stale_while_revalidate,
                stale_if_error: self.stale_if_error,
                client_cache_control: None,
                headers: Vec::new(),
            },
            targeted_fields: self.targeted_fields,
            heuristic_percent: self.heuristic_percent,
            heuristic_max: self.heuristic_max,
            stale_if_missing: self.stale_if_missing,
            stale_if_error_timeout: self.stale_if_error_timeout,
            retry_interval: self.retry_interval,
            set_cookie: self.set_cookie,
            hit_for_miss: self.hit_for_miss,
            max_object_bytes,
        }
    }
}
