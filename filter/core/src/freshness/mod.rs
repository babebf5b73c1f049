// SPDX-License-Identifier: Apache-2.0
//! Decides whether a response is stored, and for how long.

mod lifetime;
mod origin_directives;
pub(crate) mod reason;
mod stream;
mod verdict;

use crate::http::caching::targeted;
use crate::http::status;
use crate::http::syntax::field_value::FieldValue;
use crate::policy::{Cookies, Origin, Policy, Rule};
use lifetime::{
    age, bounded, forbids_stale, inherited, is_said, is_validated_at_each_use, lifetime,
    never_fresh, ttl,
};
use origin_directives::{refuse_cookies, refuse_forbidden, refuse_varying, said};

pub use origin_directives::may_be_kept_downstream;
pub use reason::UncacheableReason;
pub use stream::is_stream;
pub use verdict::{Freshened, Lifetime, Storage, Verdict};

/// The statuses that Envoy's cache filters store. A response with another status is stored under one of these.
const STATUSES_OF_ENVOY: [u16; 12] = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 451, 501];

/// The facts of a response that decide whether and how long it is stored. A 304 that freshens a stored response
/// stands for a 200.
#[derive(Clone, Copy, Debug)]
pub struct ResponseFacts<'a> {
    /// `:status`.
    pub status: u16,
    /// `Cache-Control`, its lines joined by commas.
    pub cache_control: Option<FieldValue<'a>>,
    /// The fields of the policy's `targeted_fields` that it has: names in lower case, and values, with their lines
    /// joined by commas.
    pub targeted: &'a [(&'a str, FieldValue<'a>)],
    /// `Expires`.
    pub expires: Option<FieldValue<'a>>,
    /// `Date`.
    pub date: Option<FieldValue<'a>>,
    /// `Last-Modified`.
    pub last_modified: Option<FieldValue<'a>>,
    /// `Age`.
    pub age: Option<FieldValue<'a>>,
    /// The members of `Vary` that the key lacks, with commas between them.
    pub vary: Option<FieldValue<'a>>,
    /// Whether a surrogate key or a cache group is not text, so that no purge would find the response by it.
    pub has_unreadable_key: bool,
    /// Whether it has the media type of a stream, and no length ([`is_stream`]).
    pub is_stream: bool,
    /// Whether there is a `Set-Cookie`.
    pub has_set_cookie: bool,
    /// Whether the request sent its client's `Cookie` to the origin.
    pub answers_cookie: bool,
    /// Whether there is an `ETag` or a `Last-Modified` that can be read.
    pub has_validator: bool,
    /// `Content-Length`.
    pub content_length: Option<u64>,
    /// The stored response that it freshens.
    pub freshens: Option<Freshened>,
    /// Whether the request had an `Authorization` that the origin has seen.
    pub authenticated: bool,
}

impl ResponseFacts<'_> {
    /// Whether neither the request nor the response has a sign of one client, and the status is not an error, so that
    /// the response may be fresh for longer than the origin says.
    const fn is_for_any_client(&self) -> bool {
        let of_one = self.authenticated || self.answers_cookie || self.has_set_cookie;
        self.status < 400 && !of_one
    }

    /// Whether the response has no directives about caching.
    fn is_silent(&self, policy: &Policy) -> bool {
        let targeted = || targeted::directives(&policy.cache.targeted_fields, self.targeted);
        self.cache_control.is_none()
            && self.expires.is_none()
            && targeted().is_ok_and(|control| control.is_none())
    }
}

/// Decides whether a response that arrived at `now_unix` is stored, and for how long; `rule` is the one of its path.
pub fn judge(policy: &Policy, rule: &Rule, facts: &ResponseFacts<'_>, now_unix: i64) -> Verdict {
    if is_request_error(policy, facts.status) {
        return Verdict::Passing(UncacheableReason::RequestError);
    }
    if facts.authenticated {
        return judge_authenticated(policy, rule, facts, now_unix);
    }
    if status::must_not_be_stored(facts.status) {
        return Verdict::Passing(UncacheableReason::ServerError);
    }
    let lasts = policy.origin.is_bucket() || status::is_heuristically_cacheable(facts.status);
    match storage(policy, rule, facts, now_unix) {
        Ok(storage) => Verdict::Store(storage),
        Err(_) if is_server_error(facts.status) => Verdict::Passing(UncacheableReason::ServerError),
        Err(UncacheableReason::NoLifetime) if may_be_shared_once(policy, facts.status) => {
            Verdict::ShareOnce
        }
        // It allows no conclusion about other requests for the URL.
        Err(reason @ UncacheableReason::Cookie) => Verdict::Passing(reason),
        Err(reason) if lasts => Verdict::Uncacheable(reason),
        Err(reason) => Verdict::Passing(reason),
    }
}

/// Whether the waiting requests may share a response without directives about caching. If cookies are ignored, one of
/// these requests may have a cookie with which its response would be another.
fn may_be_shared_once(policy: &Policy, status: u16) -> bool {
    status::is_heuristically_cacheable(status) && policy.request.cookies != Cookies::Ignore
}

/// The verdict on a response to a request with `Authorization` (RFC 9111, 3.5). An error may be caused by the
/// credentials.
fn judge_authenticated(
    policy: &Policy,
    rule: &Rule,
    facts: &ResponseFacts<'_>,
    now_unix: i64,
) -> Verdict {
    let storable = !status::must_not_be_stored(facts.status) && !is_server_error(facts.status);
    match storage(policy, rule, facts, now_unix) {
        Ok(storage) if storable && storage.allows_authenticated => Verdict::Store(storage),
        _ => Verdict::Passing(UncacheableReason::Authorization),
    }
}

/// Whether a status is an error that the request itself may have caused. A bucket gets nothing of a request except
/// the key and the edge's signature.
pub const fn is_request_error(policy: &Policy, status: u16) -> bool {
    status::is_request_error(status) && matches!(policy.origin, Origin::Http(_))
}

fn storage(
    policy: &Policy,
    rule: &Rule,
    facts: &ResponseFacts<'_>,
    now_unix: i64,
) -> Result<Storage, UncacheableReason> {
    // RFC 9111, 3: final, and understood. Envoy's caches do not know partial responses (3.3).
    if !matches!(facts.status, 200..=599) || matches!(facts.status, 206 | 304) {
        return Err(UncacheableReason::Status);
    }
    let said = said(policy, rule, facts)?;
    refuse_cookies(policy, facts, &said.control)?;
    refuse_forbidden(&said.control, facts.status)?;
    let lasts = said.control.lifetime().is_some() || said.expires.is_some();
    if facts.is_stream && facts.freshens.is_none() && !lasts {
        return Err(UncacheableReason::Stream);
    }
    let may_ask = matches!(facts.status, 200 | 203) && facts.has_validator;
    let each_use = is_validated_at_each_use(policy, rule, facts, &said.control);
    // Checked ahead of the lifetime, because a response that is only shared must suit all waiting requests as well.
    refuse_varying(&policy.response.ignore_vary, facts.vary)?;
    if facts.has_unreadable_key {
        return Err(UncacheableReason::UnreadableHeader);
    }
    let age = age(facts.age);
    let inherited = inherited(policy, rule, facts);
    let unbounded = match inherited {
        _ if each_use => never_fresh(rule, facts.status, may_ask)?,
        Some(lifetime) => lifetime,
        None => {
            let ttl = ttl(policy, rule, facts, &said, now_unix)?;
            lifetime(ttl, rule, facts.status, &said.control)
        }
    };
    let lifetime = match each_use {
        true => unbounded,
        false => bounded(unbounded, &rule.bounds, age, facts.is_for_any_client()),
    };
    if facts.content_length > Some(policy.cache.max_object_bytes) {
        return Err(UncacheableReason::TooLarge);
    }
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
        is_said: is_said(policy, rule, facts),
        allows_authenticated: match lifetime.ttl > unbounded.ttl {
            // The origin wants to see each request with credentials so soon.
            true => said.control.public,
            false => said.control.allows_authenticated(),
        },
        is_index: false,
    })
}

fn is_server_error(status: u16) -> bool {
    matches!(status, 500..=599)
}
