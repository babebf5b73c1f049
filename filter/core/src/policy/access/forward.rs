// SPDX-License-Identifier: Apache-2.0
//! The scheme forward in a policy: a server that is asked whether the client of a request may read the site.

use std::time::Duration;

use serde_json::Value;

use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{AtLeast, Form, Kind, read_text};
use crate::policy::forms::names::{HeaderName, NamePattern};
use crate::policy::forms::section::section;

/// Default time limit of a question.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Headers that no answer may set on a request: those of the connection, of the message and of HTTP's own
/// credentials, and those by which the edge forwards.
const NEVER_COPIED: &[&str] = &[
    "authorization",
    "cdn-loop",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-envoy-*",
    "x-forwarded-*",
    "x-sluice-*",
];

section! {
    /// A server that is asked whether the client of a request may read the site, such as oauth2-proxy or Authelia.
    pub struct ForwardPolicy {
        /// The URL that is asked, with http or https.
        url: CheckerUrl,
        /// Whether the path of the client is appended to the path of the URL.
        append: bool = false,
        /// Headers of the answer that the origin gets with the request. Headers of clients with these names are
        /// removed. A response to a request with such a header is for its client alone, unless key.headers has the
        /// name. Not for a bucket.
        copy: Vec<String> as CopiedHeaders = Vec::new(),
        /// Further headers of the client that the server gets. It always gets Cookie, Authorization, Accept and
        /// User-Agent.
        headers: Vec<String> as Vec<HeaderName> = Vec::new(),
        /// The cookie with the session of the server. The origin does not get it. A trailing * is for all names that
        /// begin so.
        cookie: Option<NamePattern> as Option<CookieName>,
        /// The time limit of a question.
        timeout: Duration as AtLeast<1> = TIMEOUT,
        /// The file with the CA certificates that verify the server. Default: those for HTTP origins.
        ca: Option<String> as Option<CertificateFile>,
    }
}

impl ForwardPolicy {
    /// Whether the server's session is in the cookie of this name.
    pub fn has_cookie(&self, name: &[u8]) -> bool {
        let cookie = self.cookie.as_ref();
        let name = std::str::from_utf8(name).ok();
        cookie
            .zip(name)
            .is_some_and(|(cookie, name)| cookie.matches(name))
    }
}

/// The URL of a server that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckerUrl {
    /// The whole URL.
    pub text: String,
    /// Whether the server is asked over TLS.
    pub is_secure: bool,
    /// The host, with the port unless that is the default one.
    pub authority: String,
    /// The path with the query.
    pub path: String,
}

impl CheckerUrl {
    /// Reads a URL; `None` if it is none of a server.
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_secure = match scheme {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let at = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let is_authority = !authority.is_empty()
            && authority
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte));
        let is_path = path
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'#');
        let path = if path.is_empty() { "/" } else { path };
        (is_authority && is_path).then(|| Self {
            text: text.to_owned(),
            is_secure,
            authority: authority.to_ascii_lowercase(),
            path: path.to_owned(),
        })
    }
}

impl Form<Self> for CheckerUrl {
    fn read(value: &Value, _: Kind) -> Result<Self, PolicyError> {
        let expected = "a URL such as http://oauth2-proxy:4180/oauth2/auth";
        read_text(value, expected, Self::parse)
    }
}

/// The names of headers that are copied from an answer to the request.
pub(in crate::policy) struct CopiedHeaders;

impl Form<Vec<String>> for CopiedHeaders {
    fn read(value: &Value, kind: Kind) -> Result<Vec<String>, PolicyError> {
        let names: Vec<String> = Vec::<HeaderName>::read(value, kind)?;
        if kind == Kind::Bucket && !names.is_empty() {
            let expected = "expected no header: a bucket's objects do not depend on headers";
            return Err(PolicyError::new("", expected));
        }
        for (index, name) in names.iter().enumerate() {
            let is_fixed = |fixed: &&str| NamePattern::of(fixed).matches(name);
            if NEVER_COPIED.iter().any(is_fixed) {
                let expected = format!("another header than {}", NEVER_COPIED.join(", "));
                return Err(PolicyError::text(&format!("[{index}]"), name, &expected));
            }
        }
        Ok(names)
    }
}

/// The name of a cookie, or with a trailing `*` the beginning of names.
pub(in crate::policy) struct CookieName;

impl Form<NamePattern> for CookieName {
    fn read(value: &Value, _: Kind) -> Result<NamePattern, PolicyError> {
        read_text(value, "the name of a cookie", |text| {
            let name = text.strip_suffix('*').unwrap_or(text);
            crate::policy::is_token(name).then(|| NamePattern::of(text))
        })
    }
}

/// The path of a file with certificates.
pub(in crate::policy) struct CertificateFile;

impl Form<String> for CertificateFile {
    fn read(value: &Value, _: Kind) -> Result<String, PolicyError> {
        read_text(value, "the path of a file", |text| {
            (!text.is_empty()).then(|| text.to_owned())
        })
    }
}
