// SPDX-License-Identifier: Apache-2.0
//! The time for which a response may be served (RFC 9111, 4.2).

use std::time::Duration;

use super::ResponseFacts;
use super::is_server_error;
use super::origin_directives::OriginDirectives;
use super::{Lifetime, UncacheableReason};
use crate::http::caching::cache_control::{CacheControl, MAX_DELTA_SECONDS, parse_delta_seconds};
use crate::http::status;
use crate::http::syntax::date;
use crate::http::syntax::field_value::FieldValue;
use crate::policy::{CachePolicy, Origin, Policy, Rule, Ttl, TtlBounds};

/// Whether a response is never used without validation (RFC 9111, 5.2.2.4). A 304 without directives does not change
/// this for the stored response.
pub(super) fn is_validated_at_each_use(
    policy: &Policy,
    rule: &Rule,
    facts: &ResponseFacts<'_>,
    control: &CacheControl,
) -> bool {
    let stays = rule.honor_cache_control && facts.is_silent(policy);
    let before = facts.freshens.filter(|_| stays);
    control.no_cache || before.is_some_and(|stored| stored.lifetime.must_be_validated())
}

/// The lifetime of a response that each use validates. It has to have a validator for that.
pub(super) fn never_fresh(
    rule: &Rule,
    status: u16,
    may_ask: bool,
) -> Result<Lifetime, UncacheableReason> {
    if rule.ttl.of(status) == Ttl::Fixed(Duration::ZERO) {
        Err(UncacheableReason::NoTtl)
    } else if may_ask {
        Ok(Lifetime::default())
    } else {
        Err(UncacheableReason::NoCache)
    }
}

/// The stored lifetime, which a 304 without directives does not change (RFC 9111, 3.2 and 4.3.4). If it is the
/// origin's, it is kept whatever the policy says about responses without directives. If it is heuristic, it is kept
/// unless the policy sets a time.
pub(super) fn inherited(
    policy: &Policy,
    rule: &Rule,
    facts: &ResponseFacts<'_>,
) -> Option<Lifetime> {
    let stored = facts.freshens?;
    let table = rule.ttl.of(facts.status);
    let holds = match table {
        Ttl::Origin => true,
        Ttl::Fixed(ttl) => stored.is_said && ttl > Duration::ZERO,
    };
    let silent = rule.honor_cache_control && facts.is_silent(policy);
    (holds && silent).then_some(stored.lifetime)
}

/// Whether the origin sent directives about caching with the response, or with the stored one that it freshens.
pub(super) fn is_said(policy: &Policy, rule: &Rule, facts: &ResponseFacts<'_>) -> bool {
    let stored = facts.freshens.is_some_and(|stored| stored.is_said);
    stored || (rule.honor_cache_control && !facts.is_silent(policy))
}

/// The freshness lifetime (RFC 9111, 4.2.1). Without one of the origin's it is heuristic, or the policy's.
pub(super) fn ttl(
    policy: &Policy,
    rule: &Rule,
    facts: &ResponseFacts<'_>,
    said: &OriginDirectives<'_>,
    now_unix: i64,
) -> Result<u64, UncacheableReason> {
    let table = rule.ttl.of(facts.status);
    if table == Ttl::Fixed(Duration::ZERO) {
        return Err(UncacheableReason::NoTtl);
    }
    let lifetime = match (said.control.lifetime(), said.expires) {
        (None, Some(expires)) => Some(until(expires.text()?, facts.date, now_unix)),
        (lifetime, _) => lifetime,
    };
    match (lifetime, table) {
        // An origin that gives a year to all its responses does not mean its errors.
        (Some(seconds), Ttl::Fixed(most)) if is_server_error(facts.status) => {
            Ok(seconds.min(most.as_secs()))
        }
        (Some(seconds), _) => Ok(seconds),
        (None, Ttl::Fixed(ttl)) if may_be_silent(policy, rule, facts.status) => Ok(ttl.as_secs()),
        (None, Ttl::Fixed(_)) => Err(UncacheableReason::NoLifetime),
        (None, Ttl::Origin) => heuristic(&policy.cache, facts, &said.control, now_unix)
            .filter(|seconds| *seconds > 0)
            .ok_or(UncacheableReason::NoLifetime),
    }
}

/// Whether a response with that status is kept for the policy's time if the origin sends no lifetime. A response of
/// an HTTP origin is kept if RFC 9110 allows it, or if the policy names the status. A response of a bucket always is,
/// because a bucket cannot answer in another way.
fn may_be_silent(policy: &Policy, rule: &Rule, code: u16) -> bool {
    let bucket = matches!(policy.origin, Origin::Bucket(_));
    bucket || status::is_heuristically_cacheable(code) || rule.ttl.names(code)
}

/// The heuristic lifetime in seconds: a part of the time since the object was last changed (RFC 9111, 4.2.2), by the
/// origin's clock.
fn heuristic(
    policy: &CachePolicy,
    facts: &ResponseFacts<'_>,
    control: &CacheControl,
    now_unix: i64,
) -> Option<u64> {
    if !control.public && !status::is_heuristically_cacheable(facts.status) {
        return None;
    }
    let changed = date::of(facts.last_modified?)?;
    let date = facts.date.and_then(date::of).unwrap_or(now_unix);
    let unchanged = u64::try_from(date.saturating_sub(changed)).unwrap_or(0);
    let part = unchanged.saturating_mul(policy.heuristic_percent) / 100;
    Some(part.min(policy.heuristic_max.as_secs()))
}

/// The times for which a response may be served: `ttl`, and stale while it is refreshed or while the origin fails.
///
/// The origin's directives take precedence over the policy. None of them counts if staleness is forbidden. A 5xx is
/// never served stale, because a stale response replaces errors and must not be one. A 4xx is not served stale while
/// it is refreshed, unless the origin allows it, because an object that has just been created should be seen.
pub(super) fn lifetime(ttl: u64, rule: &Rule, status: u16, control: &CacheControl) -> Lifetime {
    if forbids_stale(status, control) {
        return Lifetime {
            ttl,
            ..Lifetime::default()
        };
    }
    Lifetime {
        ttl,
        stale_while_revalidate: match control.stale_while_revalidate {
            Some(seconds) => seconds,
            None if status < 400 => rule.stale_while_revalidate.as_secs(),
            None => 0,
        },
        stale_if_error: control
            .stale_if_error
            .unwrap_or(rule.stale_if_error.as_secs()),
    }
}

/// The lifetime of a response of that age within the policy's bounds, which count from the arrival. `may_lengthen` is
/// false if the least time does not apply.
pub(super) fn bounded(
    lifetime: Lifetime,
    bounds: &TtlBounds,
    age: u64,
    may_lengthen: bool,
) -> Lifetime {
    let least = match bounds.min.as_secs() {
        min if min > 0 && may_lengthen => age.saturating_add(min),
        _ => 0,
    };
    let ttl = lifetime.ttl.max(least);
    let Some(max) = bounds.max.map(|max| max.as_secs()) else {
        return Lifetime { ttl, ..lifetime };
    };
    Lifetime {
        ttl: ttl.min(age.saturating_add(max)),
        stale_while_revalidate: lifetime.stale_while_revalidate.min(max),
        stale_if_error: lifetime.stale_if_error.min(max),
    }
}

pub(super) fn forbids_stale(status: u16, control: &CacheControl) -> bool {
    control.forbids_stale() || is_server_error(status)
}

/// Seconds from the response's own `Date` to `Expires`, so that the origin's clock may be wrong (RFC 9111, 4.2.1). An
/// invalid date, above all `0`, is in the past (5.3).
fn until(expires: &str, date: Option<FieldValue<'_>>, now_unix: i64) -> u64 {
    let Some(expires) = date::parse_at(expires, now_unix) else {
        return 0;
    };
    let date = date
        .and_then(|date| date::parse_at(date.text().ok()?, now_unix))
        .unwrap_or(now_unix);
    u64::try_from(expires.saturating_sub(date)).map_or(0, |seconds| seconds.min(MAX_DELTA_SECONDS))
}

/// The value of `Age` (RFC 9111, 5.1): the first member of a list counts, and an invalid number is ignored.
pub(super) fn age(header: Option<FieldValue<'_>>) -> u64 {
    header
        .and_then(|value| value.bytes().split(|byte| *byte == b',').next())
        .and_then(|first| parse_delta_seconds(first.trim_ascii()))
        .unwrap_or(0)
}
