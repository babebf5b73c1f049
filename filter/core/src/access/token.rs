// SPDX-License-Identifier: Apache-2.0
//! The token (RFC 7519) in a request. Envoy verifies it; this reads only its form and its subject.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value;

/// The most bytes of a token.
const LONGEST_TOKEN: usize = 16 << 10;
/// The most characters of a subject that logs have.
const LONGEST_SUBJECT: usize = 128;
/// The scheme of `Authorization` (RFC 6750).
const BEARER: &[u8] = b"bearer";

/// The token that a request presents.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum PresentedToken {
    /// The request has none.
    #[default]
    Absent,
    /// The request has this one, which has the form of a token.
    Present(Vec<u8>),
    /// The request has several, or one without the form of a token.
    Malformed,
}

impl PresentedToken {
    /// The token of a request with these lines of `Authorization` and of `Cookie`, in the one or in the cookie of that
    /// name.
    pub fn of<'a>(
        authorization: &[Vec<u8>],
        cookies: impl Iterator<Item = &'a [u8]>,
        cookie: Option<&str>,
    ) -> Self {
        let mut bearers = authorization.iter().filter_map(|line| bearer(line));
        if let Some(token) = bearers.next() {
            return match authorization.len() {
                1 => Self::checked(token),
                _ => Self::Malformed,
            };
        }
        let Some(name) = cookie else {
            return Self::Absent;
        };
        let cookies = cookies.flat_map(|line| line.split(|&byte| byte == b';'));
        let mut values = cookies.filter_map(|cookie| value_of(cookie, name.as_bytes()));
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(token), None) => Self::checked(token),
            (Some(_), Some(_)) => Self::Malformed,
        }
    }

    /// A token of three parts, whose header asks for no extension that the verifier would have to know (RFC 7515,
    /// 4.1.11).
    fn checked(token: &[u8]) -> Self {
        let mut parts = token.split(|&byte| byte == b'.');
        let is_part = |part: &[u8]| {
            let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            !part.is_empty() && part.iter().all(allowed)
        };
        let has_form = token.len() <= LONGEST_TOKEN
            && parts.clone().count() == 3
            && parts.clone().all(is_part);
        let header = parts.next().and_then(decoded);
        match header.filter(|header| has_form && header.is_object()) {
            Some(header) if header.get("crit").is_none() => Self::Present(token.to_vec()),
            _ => Self::Malformed,
        }
    }

    /// The subject of a verified token, without control characters and of bounded length.
    pub fn subject(&self) -> Option<String> {
        let Self::Present(token) = self else {
            return None;
        };
        let payload = token.split(|&byte| byte == b'.').nth(1)?;
        let claims = decoded(payload)?;
        let subject = claims.get("sub")?.as_str()?;
        let shown =
            subject
                .chars()
                .take(LONGEST_SUBJECT)
                .map(|character| match character.is_control() {
                    true => char::REPLACEMENT_CHARACTER,
                    false => character,
                });
        Some(shown.collect())
    }
}

impl fmt::Debug for PresentedToken {
    // NB: the token is a secret.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Absent => "Absent",
            Self::Present(_) => "Present",
            Self::Malformed => "Malformed",
        })
    }
}

/// The credentials of a line of `Authorization` of the scheme Bearer.
fn bearer(line: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = line.split_at_checked(BEARER.len())?;
    let separated = token.is_empty() || token.starts_with(b" ");
    (scheme.eq_ignore_ascii_case(BEARER) && separated).then(|| token.trim_ascii())
}

/// The value of a cookie of that name. An empty value is that of a client that has logged out.
fn value_of<'a>(cookie: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let at = cookie.iter().position(|&byte| byte == b'=')?;
    let (found, value) = cookie.split_at_checked(at)?;
    let value = value.get(1..).unwrap_or_default().trim_ascii();
    (found.trim_ascii() == name && !value.is_empty()).then_some(value)
}

/// The JSON of a part of a token.
fn decoded(part: &[u8]) -> Option<Value> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(part).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(header: &str, claims: &str) -> String {
        let parts = [header, claims].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        parts.join(".") + ".c2ln"
    }

    fn good() -> String {
        token(r#"{"alg":"ES256"}"#, r#"{"sub":"ada"}"#)
    }

    fn presented(authorization: &[&str], cookies: &[&str]) -> PresentedToken {
        let lines: Vec<_> = authorization
            .iter()
            .map(|line| line.as_bytes().to_vec())
            .collect();
        let cookies = cookies.iter().map(|line| line.as_bytes());
        PresentedToken::of(&lines, cookies, Some("session"))
    }

    #[test]
    fn a_token_is_in_the_header_or_in_the_cookie() {
        let good = good();
        let present = PresentedToken::Present(good.clone().into_bytes());
        for (authorization, cookies) in [
            (vec![format!("Bearer {good}")], vec![]),
            (vec![format!("bearer   {good} ")], vec![]),
            (vec![], vec![format!("a=1; session={good}; b=2")]),
            (vec![], vec!["a=1".to_owned(), format!("session = {good}")]),
            (
                vec!["Basic YTpi".to_owned()],
                vec![format!("session={good}")],
            ),
            // The header precedes the cookie.
            (vec![format!("Bearer {good}")], vec!["session=x".to_owned()]),
        ] {
            let authorization: Vec<_> = authorization.iter().map(String::as_str).collect();
            let cookies: Vec<_> = cookies.iter().map(String::as_str).collect();
            assert!(
                presented(&authorization, &cookies) == present,
                "{authorization:?} {cookies:?}"
            );
        }
    }

    #[test]
    fn a_token_that_is_given_twice_or_has_another_form_is_malformed() {
        let good = good();
        let bearer = format!("Bearer {good}");
        let cookie = format!("session={good}");
        let crit = token(r#"{"alg":"ES256","crit":["x"],"x":1}"#, "{}");
        let none = token(r#"{"alg":"none"}"#, "{}").replace("c2ln", "");
        for (authorization, cookies) in [
            (vec![bearer.as_str(), bearer.as_str()], vec![]),
            (vec![bearer.as_str(), "Basic YTpi"], vec![]),
            (vec!["Bearer"], vec![]),
            (vec!["Bearer a.b"], vec![]),
            (vec!["Bearer a.b.c"], vec![]),
            (vec![&format!("{bearer}.x")], vec![]),
            (vec![&format!("{bearer}, x")], vec![]),
            (vec![&format!("Bearer {crit}")], vec![]),
            (vec![&format!("Bearer {none}")], vec![]),
            (
                vec![&format!("{bearer}{}", "a".repeat(LONGEST_TOKEN))],
                vec![],
            ),
            (vec![], vec![cookie.as_str(), cookie.as_str()]),
            (vec![], vec!["session=x"]),
            (vec!["Bearer x"], vec![cookie.as_str()]),
        ] {
            assert!(
                presented(&authorization, &cookies) == PresentedToken::Malformed,
                "{authorization:?} {cookies:?}"
            );
        }
    }

    #[test]
    fn other_credentials_are_no_token() {
        for (authorization, cookies) in [
            (vec![], vec![]),
            (vec!["Basic YTpi"], vec!["sessions=a.b.c; session="]),
            (vec!["Bearerx"], vec![]),
        ] {
            assert!(presented(&authorization, &cookies) == PresentedToken::Absent);
        }
    }

    #[test]
    fn a_subject_is_shown_without_control_characters_and_bounded() {
        let subject = |claims: &str| {
            let token = token("{}", claims);
            PresentedToken::checked(token.as_bytes()).subject()
        };
        assert_eq!(subject(r#"{"sub":"ada"}"#).as_deref(), Some("ada"));
        assert_eq!(
            subject(r#"{"sub":"a\r\nb"}"#).as_deref(),
            Some("a\u{fffd}\u{fffd}b")
        );
        let long = subject(&format!(r#"{{"sub":"{}"}}"#, "ä".repeat(1_000)));
        assert_eq!(long.unwrap_or_default().chars().count(), LONGEST_SUBJECT);
        for claims in ["{}", r#"{"sub":7}"#, "[]"] {
            assert_eq!(subject(claims), None, "{claims}");
        }
    }

    #[test]
    fn a_token_shows_nowhere() {
        let token = PresentedToken::Present(b"secret".to_vec());
        assert_eq!(format!("{token:?}"), "Present");
    }
}
