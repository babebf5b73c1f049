// SPDX-License-Identifier: Apache-2.0
//! The sections `store` and `cache`: which responses are stored, and for how long.

use std::time::Duration;

use crate::http::caching::targeted::SURROGATE_CONTROL;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{AtLeast, Bytes, MAX_BYTES, Seconds, Whole, words};
use crate::policy::forms::names::HeaderName;
use crate::policy::forms::section::section;
use crate::policy::sections::rules::Rule;
use crate::policy::sections::slices::Slices;
use crate::policy::sections::ttl::{TtlTable, default_ttl, origin_decides};
use crate::policy::sections::ttl_bounds::TtlBounds;

/// Which responses are stored, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    /// How responses are cached and shown on paths without a rule.
    pub default: Rule,
    /// Lower-case names of the fields that win over `Cache-Control` and `Expires`, in order of priority.
    pub targeted_fields: Vec<String>,
    /// Share of the time since its `Last-Modified` for which a response is fresh, in percent, if the origin sends no
    /// lifetime and the status has the `ttl` `origin`.
    pub heuristic_percent: u64,
    /// Longest time for which a response is fresh by `heuristic_percent`.
    pub heuristic_max: Duration,
    /// Whether a 404 or a 410 counts as a failure of the origin if a stored response may be served.
    pub stale_if_missing: bool,
    /// How long the origin may be silent before a stale response is served as if the origin had failed.
    pub stale_if_error_timeout: Duration,
    /// Least time between two requests to the origin for a key that is served stale, without the random part.
    pub retry_interval: Duration,
    /// Treatment of `Set-Cookie`. It is removed only from stored responses.
    pub set_cookie: SetCookie,
    /// Longest time for which a key is hit-for-miss, because its response could not be stored.
    pub hit_for_miss: Duration,
    /// Size of the largest object that is stored, in bytes. Larger objects pass through.
    pub max_object_bytes: u64,
}

/// Treatment of a response with `Set-Cookie`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetCookie {
    /// The client gets the response, and it is not stored.
    Pass,
    /// The header is removed from the stored response.
    Strip,
    /// The response is stored with the header, if it says that it is for all clients.
    Store,
}

words!(SetCookie { Pass = "pass", Strip = "strip", Store = "store" });

section! {
    /// The store of responses.
    pub(in crate::policy) struct Store {
        /// The largest object that is stored as a whole, in bytes. Each slow client may hold as many bytes in memory, because
        /// Envoy's cache reads an object without regard to the speed of its client.
        max_object_bytes: u64 as Bytes<1, MAX_BYTES> = 16 << 20,
        /// Larger objects, which are stored as slices.
        slices: Slices,
    }
}

section! {
    /// Which responses are stored, and for how long.
    pub(in crate::policy) struct Cache {
        /// How long a response is fresh if the origin sends no lifetime. A duration applies to 200, 203, 301 and 308;
        /// origin applies to all statuses; a table has both by status (200), class (5xx) or default. A duration has
        /// whole seconds. For a 5xx it is also the longest lifetime that the origin can set. 0s: the response is not
        /// stored, whatever the origin says. origin: a part of the time since Last-Modified, see heuristic_percent; a
        /// response without Last-Modified is not stored. Default: for a bucket 1h for 200, 203, 301 and 308, else 1s;
        /// for an HTTP origin origin. For an HTTP origin a duration for default applies to 200, 203, 204, 300, 301,
        /// 308, 404 and 410 only. An entry for a status that is never stored can only be 0s: 428, 429, 431, 511, and
        /// for an HTTP origin each error that the request itself may have caused.
        ttl: TtlTable = origin_decides(); bucket: default_ttl(),
        /// The least time for which a stored response with a status below 400 is fresh after its arrival, whatever
        /// lifetime the origin sends. It does not apply to responses with no-cache or Set-Cookie, to responses to
        /// requests with Authorization, and to responses that are not stored, such as those with no-store, private or
        /// Vary: *. Whole seconds. 0s: no such bound.
        min_ttl: Duration as Seconds = Duration::ZERO,
        /// The greatest time for which a response is fresh after its arrival, whatever lifetime the origin or the
        /// policy says. It also bounds stale_while_revalidate and stale_if_error, the origin's and the policy's.
        /// Whole seconds, at least 1s. Default: no such bound.
        max_ttl: Option<Duration> as Option<Seconds>,
        /// Whether the origin's targeted fields, Cache-Control and Expires count. If present, they win over the
        /// policy.
        honor_cache_control: bool = true,
        /// Response headers that win over Cache-Control and Expires. The first one that is present and valid counts.
        /// They are targeted fields as in RFC 9213, and surrogate-control, which clients never get.
        targeted_fields: Vec<String> as Vec<HeaderName> =
            ["cdn-cache-control", SURROGATE_CONTROL].map(str::to_owned).into(),
        /// How long a response is fresh whose ttl is origin, in percent of the time since its Last-Modified, if the
        /// origin sends no lifetime (RFC 9111, 4.2.2). It applies to 200, 203, 204, 300, 301, 308, 404 and 410, and
        /// to a response with Cache-Control: public. 0: such a response is not stored.
        heuristic_percent: u64 as Whole<0, 100> = 10,
        /// The longest time for which a response is fresh by heuristic_percent. Whole seconds.
        heuristic_max: Duration as Seconds = Duration::from_secs(3_600),
        /// How long after its time to live a response with a status below 400 is served while one request in the
        /// background refreshes it, if the origin sends no such time. Whole seconds. Default: 60s for a bucket, 0s
        /// for an HTTP origin.
        stale_while_revalidate: Duration as Seconds = Duration::ZERO; bucket: Duration::from_secs(60),
        /// How long after its time to live a response with a status below 500 is served while the origin fails, if
        /// the origin sends no such time. Whole seconds. Default: 1d for a bucket, 10m for an HTTP origin.
        stale_if_error: Duration as Seconds = Duration::from_secs(600); bucket: Duration::from_secs(86_400),
        /// Whether stale_if_error also applies to a 404 or a 410, for an origin that may lose sight of its objects. A
        /// purge, a bucket's event or an unsafe request ends this: after it, clients get the 404 or 410.
        stale_if_missing: bool = false,
        /// How long the origin may be silent before a stale response is served as if the origin had failed. It should
        /// be shorter than coalesce.max_wait, because otherwise waiting requests are sent to the origin first.
        stale_if_error_timeout: Duration as AtLeast<1> = Duration::from_secs(4),
        /// The least time between two requests to the origin for a key that is served stale. Up to half of it is
        /// added at random.
        retry_interval: Duration as AtLeast<1> = Duration::from_secs(2),
        /// How a response with Set-Cookie is treated. pass: the client gets it unchanged and it is not stored. strip:
        /// if a response could be stored without Set-Cookie, it is stored without it. store: a response with public
        /// or s-maxage is stored with its Set-Cookie, which every client gets; other responses are treated as with
        /// pass.
        set_cookie: SetCookie = SetCookie::Pass,
        /// The longest time for which requests for a key do not wait for each other, because its responses are not
        /// stored. The first time is one second, and each later time is twice as long. Once a second one of these
        /// requests checks whether its response can be stored. After a request with headers beside its key, the time
        /// begins only with the second such response in a row.
        hit_for_miss: Duration as AtLeast<1> = Duration::from_secs(120),
    }
}

impl Cache {
    /// Compiles the policy with that size of the largest object.
    ///
    /// # Errors
    /// No time is between the bounds of the times.
    pub(in crate::policy) fn compile(
        self,
        max_object_bytes: u64,
    ) -> Result<CachePolicy, PolicyError> {
        let bounds = TtlBounds {
            min: self.min_ttl,
            max: self.max_ttl,
        };
        Ok(CachePolicy {
            default: Rule {
                ttl: self.ttl,
                bounds: bounds.check()?,
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
        })
    }
}
