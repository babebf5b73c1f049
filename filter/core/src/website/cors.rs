// SPDX-License-Identifier: Apache-2.0
//! Cross-origin resource sharing at the edge, after the Fetch standard.
//!
//! A stored response does not name the origins that may read it, so one stored response serves the pages of all
//! origins. The edge adds the fields for the origin of each request.

use crate::policy::{CorsPolicy, OriginPattern};

/// Beginning of the names of all response headers that allow origins to read a response.
pub const CORS_PREFIX: &str = "access-control-";

/// Member of `Vary` by which caches learn that a response is for one origin.
pub const VARY_BY_ORIGIN: &str = "Origin";

/// A response header: a name in lower case and its value.
pub type Field = (&'static str, String);

/// Returns the fields of a response for a page of `origin`, the value of the request's `Origin`.
///
/// If all origins may read a response, the fields are also on responses to requests without `Origin`: a browser that
/// has cached an image for a page may show it to a script later, without another request.
pub fn response_fields(cors: &CorsPolicy, origin: Option<&str>) -> Vec<Field> {
    let mut fields = Vec::new();
    if !allow(cors, origin, &mut fields) {
        return fields;
    }
    if !cors.exposed_headers.is_empty() {
        let exposed = cors.exposed_headers.clone();
        fields.push(("access-control-expose-headers", exposed));
    }
    fields
}

/// Returns the fields of the response to a preflight for a page of `origin`. There are none if the origin is not
/// allowed; a browser takes that as a refusal.
pub fn preflight_fields(cors: &CorsPolicy, origin: Option<&str>) -> Vec<Field> {
    let mut fields = Vec::new();
    if !allow(cors, origin, &mut fields) {
        return fields;
    }
    fields.push(("access-control-allow-methods", cors.methods.clone()));
    if !cors.headers.is_empty() {
        fields.push(("access-control-allow-headers", cors.headers.clone()));
    }
    let seconds = cors.max_age.as_secs().to_string();
    fields.push(("access-control-max-age", seconds));
    fields
}

/// Whether responses differ by origin, so that caches behind the edge must know.
pub fn varies(cors: &CorsPolicy) -> bool {
    cors.origins.is_some()
}

fn allow(cors: &CorsPolicy, origin: Option<&str>, fields: &mut Vec<Field>) -> bool {
    let allowed = match (&cors.origins, origin) {
        (None, _) => "*".to_owned(),
        (Some(patterns), Some(origin)) if patterns.iter().any(|each| each.matches(origin)) => {
            origin.to_owned()
        }
        (Some(_), _) => return false,
    };
    fields.push(("access-control-allow-origin", allowed));
    if cors.credentials {
        fields.push(("access-control-allow-credentials", "true".to_owned()));
    }
    true
}

impl OriginPattern {
    /// Whether the pattern fits the origin of a page, as a browser writes it.
    pub fn matches(&self, origin: &str) -> bool {
        match self {
            Self::Exact(exact) => origin == exact,
            Self::Subdomains { scheme, rest } => origin
                .strip_prefix(scheme.as_str())
                .and_then(|host| host.strip_suffix(rest.as_str()))
                .is_some_and(is_subdomain),
        }
    }
}

fn is_subdomain(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.bytes().all(is_inner)
}
