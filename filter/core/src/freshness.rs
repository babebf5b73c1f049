// SPDX-License-Identifier: Apache-2.0
//! Whether a response is stored, and for how long.

use std::time::Duration;

use crate::http::cache_control::{CacheControl, MAX_DELTA_SECONDS, parse_delta_seconds};
use crate::http::date;
use crate::http::status;
use crate::http::targeted;
use crate::policy::{CachePolicy, Cookies, Origin, Policy, Rule, SetCookie, Ttl};

/// What Envoy's cache filters store; any other status is stored in disguise.
const STATUSES_OF_ENVOY: [u16; 12] = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 451, 501];

/// For how long the headers that a HEAD has brought answer others. Nothing brings them up to date when the
/// object itself is fetched and stored under its own key, so the two differ for no longer than that. In seconds.
const HEADERS_TTL: u64 = 5;

/// What of a response decides about it. A 304 that freshens a stored response stands for a 200.
#[derive(Clone, Copy, Debug)]
pub struct ResponseFacts<'a> {
    /// `:status`.
    pub status: u16,
    /// `Cache-Control`, its lines joined by commas.
    pub cache_control: Option<&'a str>,
    /// The fields of the policy's `targeted_fields` that it has: names, in lower case, and values,
    /// their lines joined by commas.
    pub targeted: &'a [(&'a str, &'a str)],
    /// `Expires`.
    pub expires: Option<&'a str>,
    /// `Date`.
    pub date: Option<&'a str>,
    /// `Last-Modified`.
    pub last_modified: Option<&'a str>,
    /// `Age`.
    pub age: Option<&'a str>,
    /// The members of `Vary` that the key does not have, with commas between them.
    pub vary: Option<&'a str>,
    /// There is a `Set-Cookie`.
    pub has_set_cookie: bool,
    /// The request took its client's `Cookie` to the origin.
    pub answers_cookie: bool,
    /// There is an `ETag` or a `Last-Modified`.
    pub has_validator: bool,
    /// `Content-Length`.
    pub content_length: Option<u64>,
    /// For how long the stored response may be served that it freshens.
    pub freshens: Option<Lifetime>,
    /// The request had an `Authorization` that the origin has seen.
    pub authenticated: bool,
}

impl ResponseFacts<'_> {
    /// Whether the origin says nothing of how long the response is fresh.
    fn is_silent(&self) -> bool {
        self.cache_control.is_none() && self.expires.is_none() && self.targeted.is_empty()
    }
}

/// What becomes of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes into the store.
    Store(Storage),
    /// It would go into the store, which has no room for anything now.
    NoRoom(Storage),
    /// An error that is not stored: the followers get the same status instead of asking again.
    Share(u16),
    /// It is not stored, as nobody says for how long it is fresh. Those who wait for it already get it too.
    ShareOnce,
    /// An error that the request itself may have caused: it says nothing about the next request for the URL.
    RequestError,
    /// The origin has seen credentials, and does not say that others may have the response (RFC 9111, 3.5): it says nothing
    /// about the next request for the URL.
    ForCredentials,
    /// It is for the one who asked.
    Uncacheable(UncacheableReason),
    /// The same, and its status says nothing about the next response: a URL that redirects one client for the moment
    /// may have a page for others.
    Passing(UncacheableReason),
}

impl Verdict {
    /// The verdict on a response of that status where the store has no room. An error is shared as one that is never
    /// stored, so that an origin in trouble is not asked by all who wait.
    #[must_use]
    pub fn without_room(self, status: u16) -> Self {
        match self {
            Self::Store(_) if is_server_error(status) => Self::Share(status),
            Self::Store(storage) => Self::NoRoom(storage),
            verdict => verdict,
        }
    }
}

/// For how long a response may be served, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// Freshness lifetime (RFC 9111, 4.2.1).
    pub ttl: u64,
    /// After that, while it is refreshed (RFC 5861, 3).
    pub stale_while_revalidate: u64,
    /// After that, while the origin fails (RFC 5861, 4).
    pub stale_if_error: u64,
}

impl Lifetime {
    /// The greatest age at which it is served without asking the origin first.
    pub fn unasked(&self) -> u64 {
        self.ttl.saturating_add(self.stale_while_revalidate)
    }

    /// The greatest age at which it is served at all.
    pub fn servable(&self) -> u64 {
        self.ttl
            .saturating_add(self.stale_while_revalidate.max(self.stale_if_error))
    }

    /// Whether the response is validated at each use (RFC 9111, 5.2.2.4): it is stored, and never fresh.
    pub const fn must_be_validated(&self) -> bool {
        self.ttl == 0
    }

    /// Seconds of freshness left at that age; not positive once it is stale.
    pub fn fresh_for(&self, age: u64) -> i64 {
        let signed = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
        signed(self.ttl).saturating_sub(signed(age))
    }
}

/// How a response is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// For how long it may be served; it is fresh for longer than `age`, unless it is validated at each use.
    pub lifetime: Lifetime,
    /// How old the response was when it came, in seconds.
    pub age: u64,
    /// It must not be served stale for a client's sake either (RFC 9111, 4.2.4).
    pub forbids_stale: bool,
    /// Envoy's cache filters do not store the status.
    pub disguise: bool,
    /// Whether the origin may be asked whether it has changed: of a 200 or 203 with a validator.
    pub may_ask: bool,
    /// Whether it may be reused for requests with `Authorization`, and where it is the response to one (RFC 9111, 3.5).
    pub allows_authenticated: bool,
}

impl Storage {
    /// How the headers alone are stored: for a moment, and never served stale.
    #[must_use]
    pub fn for_headers(self) -> Self {
        Self {
            lifetime: Lifetime {
                ttl: self.lifetime.ttl.min(self.age.saturating_add(HEADERS_TTL)),
                ..Lifetime::default()
            },
            ..self
        }
    }
}

/// Why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncacheableReason {
    /// Not a final response for all of the object: 1xx, 206, 304.
    Status,
    /// `Set-Cookie`: it is for one client.
    SetCookie,
    /// The request had a `Cookie`, and the response does not say that it is for all.
    Cookie,
    /// `Cache-Control: must-understand` with a status that is not understood.
    NotUnderstood,
    /// `Cache-Control: no-store`.
    NoStore,
    /// `Cache-Control: no-cache` without a validator.
    NoCache,
    /// `Cache-Control: private`.
    Private,
    /// `Vary` names a request header that the policy does not ignore.
    Vary,
    /// Larger than the policy allows.
    TooLarge,
    /// The policy's lifetime for this status is 0, which the origin's does not change.
    NoTtl,
    /// Neither the origin nor the policy gives a response with that status a lifetime.
    NoLifetime,
    /// It came with no lifetime left.
    Stale,
}

impl UncacheableReason {
    /// A token for logs and `Cache-Status`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::SetCookie => "set-cookie",
            Self::Cookie => "cookie",
            Self::NotUnderstood => "must-understand",
            Self::NoStore => "no-store",
            Self::NoCache => "no-cache",
            Self::Private => "private",
            Self::Vary => "vary",
            Self::TooLarge => "too-large",
            Self::NoTtl => "no-ttl",
            Self::NoLifetime => "no-lifetime",
            Self::Stale => "stale",
        }
    }
}

/// Whether a response that came at `now_unix` is stored, and for how long; `rule` is that of its path.
pub fn judge(policy: &Policy, rule: &Rule, facts: &ResponseFacts<'_>, now_unix: i64) -> Verdict {
    if is_request_error(policy, facts.status) {
        return Verdict::RequestError;
    }
    if facts.authenticated {
        return judge_authenticated(policy, rule, facts, now_unix);
    }
    if status::must_not_be_stored(facts.status) {
        return Verdict::Share(facts.status);
    }
    let lasts = policy.origin.is_bucket() || status::is_heuristically_cacheable(facts.status);
    match storage(policy, rule, facts, now_unix) {
        Ok(storage) => Verdict::Store(storage),
        Err(_) if is_server_error(facts.status) => Verdict::Share(facts.status),
        Err(UncacheableReason::NoLifetime) if may_be_shared_once(policy, facts.status) => {
            Verdict::ShareOnce
        }
        // Of other requests for the URL it says nothing.
        Err(reason @ UncacheableReason::Cookie) => Verdict::Passing(reason),
        Err(reason) if lasts => Verdict::Uncacheable(reason),
        Err(reason) => Verdict::Passing(reason),
    }
}

/// Whether those who wait may share a response of which the origin says nothing. Where cookies are ignored, one of them may
/// have a cookie by which its own response would be another.
fn may_be_shared_once(policy: &Policy, status: u16) -> bool {
    status::is_heuristically_cacheable(status) && policy.request.cookies != Cookies::Ignore
}

/// The verdict on a response to a request with `Authorization` (RFC 9111, 3.5). An error may be about the credentials.
fn judge_authenticated(
    policy: &Policy,
    rule: &Rule,
    facts: &ResponseFacts<'_>,
    now_unix: i64,
) -> Verdict {
    let storable = !status::must_not_be_stored(facts.status) && !is_server_error(facts.status);
    match storage(policy, rule, facts, now_unix) {
        Ok(storage) if storable && storage.allows_authenticated => Verdict::Store(storage),
        _ => Verdict::ForCredentials,
    }
}

/// Whether a status is an error that the request itself may have caused. A bucket sees nothing of a request but the key
/// and the edge's signature.
pub const fn is_request_error(policy: &Policy, status: u16) -> bool {
    status::is_request_error(status) && matches!(policy.origin, Origin::Http(_))
}

fn storage(
    policy: &Policy,
    rule: &Rule,
    facts: &ResponseFacts<'_>,
    now_unix: i64,
) -> Result<Storage, UncacheableReason> {
    // RFC 9111, 3: final, and understood. Envoy's caches know no partial responses (3.3).
    if !matches!(facts.status, 200..=599) || matches!(facts.status, 206 | 304) {
        return Err(UncacheableReason::Status);
    }
    let said = said(policy, rule, facts);
    refuse_cookies(policy, facts, &said.control)?;
    refuse_forbidden(&said.control, facts.status)?;
    let may_ask = matches!(facts.status, 200 | 203) && facts.has_validator;
    let each_use = is_validated_at_each_use(rule, facts, &said.control);
    // Before its lifetime, since a response that is only shared must be that of all who wait for it as well.
    if varies(&policy.response.ignore_vary, facts.vary) {
        return Err(UncacheableReason::Vary);
    }
    let inherited = inherited(rule, facts);
    let lifetime = match inherited {
        _ if each_use => never_fresh(rule, facts.status, may_ask)?,
        Some(lifetime) => lifetime,
        None => {
            let ttl = ttl(policy, rule, facts, &said, now_unix)?;
            lifetime(ttl, rule, facts.status, &said.control)
        }
    };
    if facts.content_length > Some(policy.cache.max_object_bytes) {
        return Err(UncacheableReason::TooLarge);
    }
    let age = age(facts.age);
    if age >= lifetime.ttl && !each_use {
        return Err(UncacheableReason::Stale);
    }
    let is_strict = lifetime.servable() == lifetime.ttl;
    Ok(Storage {
        lifetime,
        age,
        forbids_stale: forbids_stale(facts.status, &said.control)
            || each_use
            || (inherited.is_some() && is_strict),
        disguise: !STATUSES_OF_ENVOY.contains(&facts.status),
        may_ask,
        allows_authenticated: said.control.allows_authenticated(),
    })
}

/// What the origin says about caching, in the field that counts.
#[derive(Clone, Copy, Debug, Default)]
struct Said<'a> {
    control: CacheControl,
    expires: Option<&'a str>,
}

/// A targeted field comes before `Cache-Control` and `Expires`, which then say nothing (RFC 9213, 2.2).
/// A policy that knows better than the origin reads none of them.
fn said<'a>(policy: &Policy, rule: &Rule, facts: &ResponseFacts<'a>) -> Said<'a> {
    if !rule.honor_cache_control {
        return Said::default();
    }
    match targeted::directives(&policy.cache.targeted_fields, facts.targeted) {
        Some(control) => Said {
            control,
            expires: None,
        },
        None => Said {
            control: facts
                .cache_control
                .map(CacheControl::parse)
                .unwrap_or_default(),
            expires: facts.expires,
        },
    }
}

/// Whether a response that is not stored is not for one client only, so that caches behind the edge
/// may be told to keep it.
pub fn is_for_all(rule: &Rule, cache_control: &str, has_set_cookie: bool) -> bool {
    let control = CacheControl::parse(cache_control);
    let forbidden = control.no_store || control.private || control.no_cache;
    let for_one = rule.honor_cache_control && forbidden;
    !has_set_cookie && !for_one
}

/// Whether cookies make the response one client's.
fn refuse_cookies(
    policy: &Policy,
    facts: &ResponseFacts<'_>,
    control: &CacheControl,
) -> Result<(), UncacheableReason> {
    let for_one = !control.is_for_all();
    let sets_ones_own = match policy.cache.set_cookie {
        SetCookie::Pass => true,
        SetCookie::Strip => false,
        SetCookie::Store => for_one,
    };
    if facts.has_set_cookie && sets_ones_own {
        return Err(UncacheableReason::SetCookie);
    }
    if facts.answers_cookie && for_one {
        return Err(UncacheableReason::Cookie);
    }
    Ok(())
}

/// RFC 9111, 3.
fn refuse_forbidden(control: &CacheControl, status: u16) -> Result<(), UncacheableReason> {
    if control.must_understand && !is_understood(status) {
        return Err(UncacheableReason::NotUnderstood);
    }
    // RFC 9111, 5.2.2.3: for caches that do not know must-understand.
    if control.no_store && !control.must_understand {
        return Err(UncacheableReason::NoStore);
    }
    if control.private {
        return Err(UncacheableReason::Private);
    }
    Ok(())
}

/// Statuses whose rules for caches this one follows: the final ones of RFC 9110, 15 but for 206 and
/// 304, those of RFC 6585, and 451.
const fn is_understood(status: u16) -> bool {
    matches!(
        status,
        200..=205 | 300..=303 | 305 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 428 | 429 | 431 | 451
            | 500..=505 | 511
    )
}

/// Whether a response is never used without validation (RFC 9111, 5.2.2.4). A 304 without a word of its own leaves that as
/// it is.
fn is_validated_at_each_use(
    rule: &Rule,
    facts: &ResponseFacts<'_>,
    control: &CacheControl,
) -> bool {
    let stays = rule.honor_cache_control && facts.is_silent();
    let before = facts.freshens.filter(|_| stays);
    control.no_cache || before.is_some_and(|lifetime| lifetime.must_be_validated())
}

/// The lifetime of a response that each use validates, for which it has to have a validator.
fn never_fresh(rule: &Rule, status: u16, may_ask: bool) -> Result<Lifetime, UncacheableReason> {
    if rule.ttl.of(status) == Ttl::Fixed(Duration::ZERO) {
        Err(UncacheableReason::NoTtl)
    } else if may_ask {
        Ok(Lifetime::default())
    } else {
        Err(UncacheableReason::NoCache)
    }
}

/// What a 304 without a word of its own leaves as it is (RFC 9111, 3.2), where the origin decides.
fn inherited(rule: &Rule, facts: &ResponseFacts<'_>) -> Option<Lifetime> {
    let origin_decides = rule.ttl.of(facts.status) == Ttl::Origin && rule.honor_cache_control;
    facts
        .freshens
        .filter(|_| origin_decides && facts.is_silent())
}

/// RFC 9111, 4.2.1, with heuristics or the policy's time where the origin does not say.
fn ttl(
    policy: &Policy,
    rule: &Rule,
    facts: &ResponseFacts<'_>,
    said: &Said<'_>,
    now_unix: i64,
) -> Result<u64, UncacheableReason> {
    let table = rule.ttl.of(facts.status);
    if table == Ttl::Fixed(Duration::ZERO) {
        return Err(UncacheableReason::NoTtl);
    }
    let expires = || Some(until(said.expires?, facts.date, now_unix));
    match (said.control.lifetime().or_else(expires), table) {
        // An origin that gives a year to all that it sends does not mean its errors.
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

/// Whether a response with that status is kept for the policy's time where the origin does not say for how long. What an
/// HTTP origin answers is, by RFC 9110, or as the policy names the status; a bucket has no other way to answer.
fn may_be_silent(policy: &Policy, rule: &Rule, code: u16) -> bool {
    let bucket = matches!(policy.origin, Origin::Bucket(_));
    bucket || status::is_heuristically_cacheable(code) || rule.ttl.names(code)
}

/// Part of the time since the object was last changed (RFC 9111, 4.2.2), by the origin's clock, in seconds.
fn heuristic(
    policy: &CachePolicy,
    facts: &ResponseFacts<'_>,
    control: &CacheControl,
    now_unix: i64,
) -> Option<u64> {
    if !control.public && !status::is_heuristically_cacheable(facts.status) {
        return None;
    }
    let changed = date::parse(facts.last_modified?)?;
    let date = facts.date.and_then(date::parse).unwrap_or(now_unix);
    let unchanged = u64::try_from(date.saturating_sub(changed)).unwrap_or(0);
    let part = unchanged.saturating_mul(policy.heuristic_percent) / 100;
    Some(part.min(policy.heuristic_max.as_secs()))
}

fn is_server_error(status: u16) -> bool {
    matches!(status, 500..=599)
}

/// For how long a response may be served: besides `ttl`, stale while it is refreshed, and while the origin fails.
///
/// The origin's word comes before the policy's, and none of them counts where staleness is forbidden.
/// A 5xx is never stale, as what takes the place of an error must not be one; nor is a 4xx while it is
/// refreshed unless the origin says so, as an object that has just been made should be seen.
fn lifetime(ttl: u64, rule: &Rule, status: u16, control: &CacheControl) -> Lifetime {
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

fn forbids_stale(status: u16, control: &CacheControl) -> bool {
    control.forbids_stale() || is_server_error(status)
}

/// Seconds from the response's own `Date` to `Expires`, so that the origin's clock may be wrong
/// (RFC 9111, 4.2.1). What is no date, `0` above all, lies in the past (5.3).
fn until(expires: &str, date: Option<&str>, now_unix: i64) -> u64 {
    let Some(expires) = date::parse_at(expires, now_unix) else {
        return 0;
    };
    let date = date
        .and_then(|date| date::parse_at(date, now_unix))
        .unwrap_or(now_unix);
    u64::try_from(expires.saturating_sub(date)).map_or(0, |seconds| seconds.min(MAX_DELTA_SECONDS))
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
