// SPDX-License-Identifier: Apache-2.0
//! The origin's directives about caching, and the responses that it forbids to store (RFC 9111, 3).

use super::ResponseFacts;
use super::UncacheableReason;
use crate::http::caching::cache_control::CacheControl;
use crate::http::caching::targeted;
use crate::http::syntax::field_value::{FieldValue, NotText};
use crate::policy::{Policy, Rule, SetCookie};

/// The origin's directives about caching, from the field that takes precedence.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OriginDirectives<'a> {
    pub control: CacheControl,
    pub expires: Option<FieldValue<'a>>,
}

/// Reads the origin's directives. A targeted field takes precedence over `Cache-Control` and `Expires`, which then do
/// not count (RFC 9213, 2.2). A policy that overrides the origin reads none of them.
///
/// # Errors
/// The field that takes precedence is not text. It may forbid to store the response.
pub(super) fn said<'a>(
    policy: &Policy,
    rule: &Rule,
    facts: &ResponseFacts<'a>,
) -> Result<OriginDirectives<'a>, UncacheableReason> {
    if !rule.honor_cache_control {
        return Ok(OriginDirectives::default());
    }
    let targeted = targeted::directives(&policy.cache.targeted_fields, facts.targeted)?;
    if let Some(control) = targeted {
        return Ok(OriginDirectives {
            control,
            expires: None,
        });
    }
    let text = facts.cache_control.map(FieldValue::text).transpose()?;
    Ok(OriginDirectives {
        control: text.map(CacheControl::parse).unwrap_or_default(),
        expires: facts.expires,
    })
}

impl From<NotText> for UncacheableReason {
    fn from(_: NotText) -> Self {
        Self::UnreadableHeader
    }
}

/// Whether a response that is not stored here is nevertheless for more than one client, so that caches behind the
/// edge may keep it.
pub fn may_be_kept_downstream(
    rule: &Rule,
    cache_control: FieldValue<'_>,
    has_set_cookie: bool,
) -> bool {
    let forbidden = cache_control.text().map_or(true, |text| {
        let control = CacheControl::parse(text);
        control.no_store || control.private || control.no_cache
    });
    let for_one = rule.honor_cache_control && forbidden;
    !has_set_cookie && !for_one
}

/// Refuses a response that cookies make specific to one client.
pub(super) fn refuse_cookies(
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

/// Refuses a response whose directives forbid to store it (RFC 9111, 3).
pub(super) fn refuse_forbidden(
    control: &CacheControl,
    status: u16,
) -> Result<(), UncacheableReason> {
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

/// Statuses whose caching rules this cache follows: the final ones of RFC 9110, 15 except 206 and 304, those of RFC
/// 6585, and 451.
const fn is_understood(status: u16) -> bool {
    matches!(
        status,
        200..=205 | 300..=303 | 305 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 428 | 429 | 431 | 451
            | 500..=505 | 511
    )
}

/// Refuses a response that depends on a request header that is not ignored (RFC 9111, 4.1).
pub(super) fn refuse_varying(
    ignored: &[String],
    vary: Option<FieldValue<'_>>,
) -> Result<(), UncacheableReason> {
    let matters = |member: &str| {
        member == "*" || !ignored.iter().any(|name| member.eq_ignore_ascii_case(name))
    };
    let vary = vary.map(FieldValue::text).transpose()?;
    let mut members = vary.unwrap_or_default().split(',').map(str::trim);
    if members.any(|member| !member.is_empty() && matters(member)) {
        return Err(UncacheableReason::Vary);
    }
    Ok(())
}
