// SPDX-License-Identifier: Apache-2.0
//! The scheme jwt in a policy: the issuer of tokens (RFC 7519), and the place of the keys that verify them.

use std::time::Duration;

use serde_json::Value;

use super::forward::{CertificateFile, CheckerUrl};
use super::{Filled, basic};
use crate::hexadecimal;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{AtLeast, Form, Kind, read_text};
use crate::policy::forms::section::section;

/// Default time after which the keys of a URL are fetched again.
const REFRESH: Duration = Duration::from_secs(60);
/// The most bytes of an issuer or of an audience.
pub(in crate::policy) const LONGEST_NAME: usize = 512;

section! {
    /// The issuer of tokens, and the keys that verify them (RFC 7519).
    pub struct JwtPolicy {
        /// The issuer, as the claim iss of a token names it.
        issuer: String as TokenName,
        /// The audiences. The claim aud of a token must name one of them.
        audiences: Vec<String> as Filled<TokenName>,
        /// The keys of the issuer, as a JWK Set (RFC 7517): a file with public keys, or a URL with https or http.
        jwks: KeySetSource as KeySetPlace,
        /// The cookie that has the token of a request without Authorization: Bearer. The origin does not get it.
        cookie: Option<String> as Option<TokenCookie>,
        /// The time after which the keys of a URL are fetched again. The former keys are in force until a fetch
        /// succeeds.
        refresh: Duration as AtLeast<1_000> = REFRESH,
        /// The file with the CA certificates that verify the server of the URL. Default: those for HTTP origins.
        ca: Option<String> as Option<CertificateFile>,
    }
}

impl JwtPolicy {
    /// The value of `WWW-Authenticate` (RFC 6750, 3), for a request with a token that is not valid or without one.
    pub(super) fn challenge(has_token: bool) -> String {
        let realm = basic::REALM;
        match has_token {
            true => format!("Bearer realm=\"{realm}\", error=\"invalid_token\""),
            false => format!("Bearer realm=\"{realm}\""),
        }
    }
}

/// The place of an issuer's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySetSource {
    /// The file with this path.
    File(String),
    /// The URL that Envoy fetches.
    Url(CheckerUrl),
    /// Envoy has the keys, or their URL. The entry point has put this hash of them in place of the source.
    Installed(String),
}

/// The path of a file, or a URL, or the hash of an installed key set.
pub(in crate::policy) struct KeySetPlace;

impl Form<KeySetSource> for KeySetPlace {
    fn read(value: &Value, _: Kind) -> Result<KeySetSource, PolicyError> {
        let hash = value.get("installed").and_then(Value::as_str);
        let hash = hash.filter(|digits| hexadecimal::bytes(digits).is_some());
        if let Some(hash) = hash {
            return Ok(KeySetSource::Installed(hash.to_owned()));
        }
        let expected = "the path of a file, or a URL such as https://id.example.com/jwks.json";
        read_text(value, expected, |text| match text.contains("://") {
            true => CheckerUrl::parse(text).map(KeySetSource::Url),
            false => (!text.is_empty()).then(|| KeySetSource::File(text.to_owned())),
        })
    }
}

/// The name of an issuer or of an audience.
pub(in crate::policy) struct TokenName;

impl Form<String> for TokenName {
    fn read(value: &Value, _: Kind) -> Result<String, PolicyError> {
        let expected = "2 to 512 visible ASCII characters";
        read_text(value, expected, |text| {
            let is_name = (2..=LONGEST_NAME).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_graphic());
            is_name.then(|| text.to_owned())
        })
    }
}

/// The name of a cookie.
pub(in crate::policy) struct TokenCookie;

impl Form<String> for TokenCookie {
    fn read(value: &Value, _: Kind) -> Result<String, PolicyError> {
        read_text(value, "the name of a cookie without *", |text| {
            let is_name = crate::policy::is_token(text) && !text.contains('*');
            is_name.then(|| text.to_owned())
        })
    }
}
