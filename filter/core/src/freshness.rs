// SPDX-License-Identifier: Apache-2.0
//! Whether a response is stored, and for how long.

use std::time::Duration;

use crate::cache_control::{CacheControl, parse_delta_seconds};
use crate::http_date;
use crate::policy::{Policy, TtlTable};

/// What Envoy's cache filters store; any other status is stored in disguise.
const STATUSES_OF_ENVOY: [u16; 12] = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 451, 501];

/// What of a response decides about it. A 304 that freshens a stored response stands for a 200.
#[derive(Clone, Copy, Debug)]
pub struct ResponseFacts<'a> {
    /// `:status`.
    pub status: u16,
    /// `Cache-Control`, its lines joined by commas.
    pub cache_control: Option<&'a str>,
    /// `Expires`.
    pub expires: Option<&'a str>,
    /// `Date`.
    pub date: Option<&'a str>,
    /// `Age`.
    pub age: Option<&'a str>,
    /// `Vary`, its lines joined by commas.
    pub vary: Option<&'a str>,
    /// There is a `Set-Cookie`.
    pub has_set_cookie: bool,
    /// There is an `ETag` or a `Last-Modified`.
    pub has_validator: bool,
    /// `Content-Length`.
    pub content_length: Option<u64>,
}

/// What becomes of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes into the store.
    Store(Storage),
    /// A 5xx that is not stored: those who wait get the same status instead of asking again.
    Share(u16),
    /// It is for the one who asked.
    Uncacheable(UncacheableReason),
}

/// How a response is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Freshness lifetime (RFC 9111, 4.2.1) in whole seconds, longer than `age`.
    pub ttl: Duration,
    /// How old the response was when it came.
    pub age: Duration,
    /// Envoy's cache filters do not store the status.
    pub disguise: bool,
    /// The store must not revalidate it: it has no validator, or is not a 200 or 203.
    pub neutral_validators: bool,
}

/// Why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncacheableReason {
    /// Not a final response for all of the object: 1xx, 206, 304.
    Status,
    /// `Set-Cookie`: it is for one client.
    SetCookie,
    /// `Cache-Control: no-store`.
    NoStore,
    /// `Cache-Control: no-cache`.
    NoCache,
    /// `Cache-Control: private`.
    Private,
    /// `Vary` names a request header that the policy does not ignore.
    Vary,
    /// Larger than the policy allows.
    TooLarge,
    /// The policy's lifetime for this status is 0, which the origin's does not change.
    NoTtl,
    /// It came with no lifetime left.
    Stale,
}

impl UncacheableReason {
    /// A token for logs and `Cache-Status`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::SetCookie => "set-cookie",
            Self::NoStore => "no-store",
            Self::NoCache => "no-cache",
            Self::Private => "private",
            Self::Vary => "vary",
            Self::TooLarge => "too-large",
            Self::NoTtl => "no-ttl",
            Self::Stale => "stale",
        }
    }
}

/// Whether a response that came at `now_unix` is stored, and for how long.
pub fn judge(policy: &Policy, facts: &ResponseFacts<'_>, now_unix: i64) -> Verdict {
    match storage(policy, facts, now_unix) {
        Ok(storage) => Verdict::Store(storage),
        Err(_) if is_server_error(facts.status) => Verdict::Share(facts.status),
        Err(reason) => Verdict::Uncacheable(reason),
    }
}

fn storage(
    policy: &Policy,
    facts: &ResponseFacts<'_>,
    now_unix: i64,
) -> Result<Storage, UncacheableReason> {
    // RFC 9111, 3: final, and understood. Envoy's caches know no partial responses (3.3).
    if !matches!(facts.status, 200..=599) || matches!(facts.status, 206 | 304) {
        return Err(UncacheableReason::Status);
    }
    if facts.has_set_cookie {
        return Err(UncacheableReason::SetCookie);
    }
    let ttl = lifetime(policy, facts, now_unix)?;
    if varies(&policy.response.ignore_vary, facts.vary) {
        return Err(UncacheableReason::Vary);
    }
    if facts.content_length > Some(policy.cache.max_object_bytes) {
        return Err(UncacheableReason::TooLarge);
    }
    let age = Duration::from_secs(age(facts.age));
    if age >= ttl {
        return Err(UncacheableReason::Stale);
    }
    Ok(Storage {
        ttl,
        age,
        disguise: !STATUSES_OF_ENVOY.contains(&facts.status),
        neutral_validators: !matches!(facts.status, 200 | 203) || !facts.has_validator,
    })
}

/// RFC 9111, 4.2.1, with the policy's table in the place of heuristics.
fn lifetime(
    policy: &Policy,
    facts: &ResponseFacts<'_>,
    now_unix: i64,
) -> Result<Duration, UncacheableReason> {
    let origin = if policy.cache.honor_cache_control {
        origin_lifetime(facts, now_unix)?
    } else {
        None
    };
    let table = table_lifetime(&policy.cache.ttl, facts.status);
    match origin.map(Duration::from_secs) {
        _ if table.is_zero() => Err(UncacheableReason::NoTtl),
        // An origin that gives a year to all that it sends does not mean its errors.
        Some(ttl) if is_server_error(facts.status) => Ok(ttl.min(table)),
        Some(ttl) => Ok(ttl),
        None => Ok(table),
    }
}

fn is_server_error(status: u16) -> bool {
    matches!(status, 500..=599)
}

/// Seconds that the origin gives the response, if it says.
fn origin_lifetime(
    facts: &ResponseFacts<'_>,
    now_unix: i64,
) -> Result<Option<u64>, UncacheableReason> {
    let control = facts.cache_control.map(CacheControl::parse);
    let control = control.unwrap_or_default();
    // RFC 9111, 3.
    if control.no_store {
        return Err(UncacheableReason::NoStore);
    }
    if control.private {
        return Err(UncacheableReason::Private);
    }
    // It could be stored and revalidated each time, which saves bytes but no wait.
    if control.no_cache {
        return Err(UncacheableReason::NoCache);
    }
    let expires = || {
        facts
            .expires
            .map(|expires| until(expires, facts.date, now_unix))
    };
    Ok(control.lifetime().or_else(expires))
}

/// Seconds from the response's own `Date` to `Expires`, so that the origin's clock may be wrong
/// (RFC 9111, 4.2.1). What is no date, `0` above all, lies in the past (5.3).
fn until(expires: &str, date: Option<&str>, now_unix: i64) -> u64 {
    let Some(expires) = http_date::parse(expires) else {
        return 0;
    };
    let date = date.and_then(http_date::parse).unwrap_or(now_unix);
    let longest = crate::duration::MAX.as_secs();
    u64::try_from(expires.saturating_sub(date)).map_or(0, |seconds| seconds.min(longest))
}

fn table_lifetime(table: &TtlTable, status: u16) -> Duration {
    let exact = table
        .exact
        .iter()
        .find_map(|(listed, ttl)| (*listed == status).then_some(*ttl));
    let class = || {
        let index = usize::from(status / 100).checked_sub(1)?;
        table.class.get(index).copied().flatten()
    };
    exact.or_else(class).unwrap_or(table.default)
}

/// RFC 9111, 5.1: of a list the first member counts, and what is no number is ignored.
fn age(header: Option<&str>) -> u64 {
    header
        .and_then(|value| value.split(',').next())
        .and_then(|first| parse_delta_seconds(first.trim()))
        .unwrap_or(0)
}

/// RFC 9111, 4.1: whether the response depends on a request header that matters.
fn varies(ignored: &[String], vary: Option<&str>) -> bool {
    let matters = |member: &str| {
        member == "*" || !ignored.iter().any(|name| member.eq_ignore_ascii_case(name))
    };
    vary.unwrap_or_default()
        .split(',')
        .map(str::trim)
        .any(|member| !member.is_empty() && matters(member))
}
