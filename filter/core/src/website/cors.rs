// SPDX-License-Identifier: Apache-2.0
//! Cross-origin resource sharing at the edge, after the Fetch standard.
//!
//! What is stored says nothing of who may read it, so one stored response serves pages of all origins;
//! the edge adds what concerns the one that asks.

use crate::policy::{CorsPolicy, OriginPattern};

/// Beginning of the names of all response headers that say who may read.
pub const CORS_PREFIX: &str = "access-control-";

/// The response header by which caches learn that a response is for one origin.
pub const VARY_BY_ORIGIN: &str = "Origin";

/// A response header: a name in lower case and its value.
pub type Field = (&'static str, String);

/// What a response says to a page of `origin`, the value of the request's `Origin`.
///
/// What is for everybody says so to those without an origin too: a browser that has cached an image
/// for a page may show it to a script later, without asking again.
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

/// What the answer to a preflight of a page of `origin` says. To one that is not allowed it says
/// nothing, which a browser takes for a refusal.
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
    /// Whether that is the origin of a page, as a browser writes it.
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
