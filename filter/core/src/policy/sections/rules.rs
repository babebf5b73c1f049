// SPDX-License-Identifier: Apache-2.0
//! Rules for paths: the first rule with a matching pattern decides how a response is cached and shown.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use serde_json::Value;

use crate::http::url::escaping::{Escaping, append_literal};
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind, Seconds, object, read_text, read_within};
use crate::policy::forms::glob::Glob;
use crate::policy::forms::names::{HeaderName, PathGlob, is_token, text};
use crate::policy::forms::section::section;
use crate::policy::sections::glob_set::GlobSet;
use crate::policy::sections::ttl::RuleTtl;
use crate::policy::sections::ttl_bounds::TtlBounds;
use crate::policy::{Origin, Policy, TtlTable};

/// How a response is cached and shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Time to live by status, if the origin sends no lifetime: exact status first, then class, then default.
    pub ttl: TtlTable,
    /// Bounds of the time to live.
    pub bounds: TtlBounds,
    /// Whether the origin's own targeted fields, `Cache-Control` and `Expires` win if present.
    pub honor_cache_control: bool,
    /// How long a response may be served stale while it is refreshed, if the origin sends no such time; whole
    /// seconds.
    pub stale_while_revalidate: Duration,
    /// How long a response may be served stale while the origin fails, if the origin sends no such time; whole
    /// seconds.
    pub stale_if_error: Duration,
    /// Value of `Cache-Control` for clients, in place of the origin's `Cache-Control` and `Expires`.
    pub client_cache_control: Option<String>,
    /// Headers that are added to responses for clients; names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Rule {
    /// Returns the client's `Cache-Control` for a response that may be shared and has this status. It replaces the
    /// origin's.
    ///
    /// Only successes and permanent redirects have it, because a browser must not keep a missing file for a year.
    pub fn client_cache_control(&self, status: u16) -> Option<&str> {
        matches!(status, 200..=299 | 301 | 304 | 308)
            .then_some(self.client_cache_control.as_deref())
            .flatten()
    }
}

/// The rules of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Rule>,
    globs: GlobSet,
    /// The rule of each pattern.
    owners: Vec<usize>,
}

impl Policy {
    /// The path of the client's request, from a path towards the store: without bucket, prefix, query and qualifiers.
    pub fn client_path<'a>(&self, store_path: &'a str) -> &'a str {
        // Qualifiers of the cache key follow a `#`, which no canonical path contains.
        let path = store_path.split_once(['?', '#']);
        let path = path.map_or(store_path, |(path, _)| path);
        match &self.origin {
            Origin::Bucket(bucket) => path.strip_prefix(&bucket.path_prefix).unwrap_or(path),
            Origin::Http(_) => path,
        }
    }

    /// Finds how responses for a path towards the store are cached and shown.
    pub fn rule(&self, store_path: &str) -> &Rule {
        let rules = &self.rules;
        if rules.rules.is_empty() {
            return &self.cache.default;
        }
        let path = self.client_path(store_path);
        let rule = |glob| rules.rules.get(*rules.owners.get(glob)?);
        let found = rules.globs.first_match(path);
        found.and_then(rule).unwrap_or(&self.cache.default)
    }

    /// A number for the part of the policy that gives the responses for a path their headers for clients. It is the same
    /// in all workers. If it differs, so may the headers.
    pub fn presentation(&self, store_path: &str) -> u64 {
        let rule = self.rule(store_path);
        let mut hasher = DefaultHasher::new();
        rule.headers.hash(&mut hasher);
        rule.client_cache_control.hash(&mut hasher);
        self.access.is_some().hash(&mut hasher);
        self.cache.targeted_fields.hash(&mut hasher);
        hasher.finish()
    }

    /// The pattern of the rule for a path towards the store; `None` if the policy has no rule for it.
    pub fn pattern(&self, store_path: &str) -> Option<&str> {
        let globs = &self.rules.globs;
        globs.pattern(globs.first_match(self.client_path(store_path))?)
    }
}

section! {
    /// How responses for some paths are cached and shown. Fields that a rule does not set are as in cache.
    pub(in crate::policy) struct RuleSection {
        /// Patterns of the path without its query, behind a bucket's prefix. * matches any characters, slashes
        /// included: /assets/*, *.js. A path that ends in a slash is the path of its index document.
        patterns as "match": Vec<Glob> as Vec<CanonicalGlob>,
        /// How long a response is fresh if the origin sends no lifetime: a duration for 200, 203, 301 and 308, or a
        /// table as in cache.ttl. For statuses that the rule does not name, cache.ttl applies.
        ttl: Option<TtlTable> as Option<RuleTtl>,
        /// As in cache.
        min_ttl: Option<Duration> as Option<Seconds>,
        /// As in cache.
        max_ttl: Option<Duration> as Option<Seconds>,
        /// As in cache.
        honor_cache_control: Option<bool>,
        /// As in cache.
        stale_while_revalidate: Option<Duration> as Option<Seconds>,
        /// As in cache.
        stale_if_error: Option<Duration> as Option<Seconds>,
        /// The Cache-Control that clients get in place of the origin's Cache-Control and Expires, with a 2xx, 301,
        /// 304 or 308 that may be shared. Clients count from receipt, so the response has no Age.
        client_cache_control: Option<String> as Option<Directives>,
        /// Headers that are added to every response for a client.
        headers: Vec<(String, String)> as HeaderValues = Vec::new(),
    }
}

/// Compiles the rules of a document. Fields that a rule does not set are as in `base`.
pub(in crate::policy) fn compile(
    sections: Vec<RuleSection>,
    base: &Rule,
) -> Result<Rules, PolicyError> {
    let mut rules = Rules::default();
    let mut globs = Vec::new();
    for (number, section) in sections.into_iter().enumerate() {
        if section.patterns.is_empty() {
            let path = format!("rules[{number}].match");
            return Err(PolicyError::new(&path, "expected at least one pattern"));
        }
        let bounds = TtlBounds {
            min: section.min_ttl.unwrap_or(base.bounds.min),
            max: section.max_ttl.or(base.bounds.max),
        };
        let bounds = bounds.check();
        let bounds = bounds.map_err(|error| error.within(&format!("rules[{number}]")))?;
        rules.owners.extend(section.patterns.iter().map(|_| number));
        globs.extend(section.patterns);
        rules.rules.push(Rule {
            ttl: match section.ttl {
                Some(ttl) => ttl.over(&base.ttl),
                None => base.ttl.clone(),
            },
            bounds,
            honor_cache_control: section
                .honor_cache_control
                .unwrap_or(base.honor_cache_control),
            stale_while_revalidate: section
                .stale_while_revalidate
                .unwrap_or(base.stale_while_revalidate),
            stale_if_error: section.stale_if_error.unwrap_or(base.stale_if_error),
            client_cache_control: section.client_cache_control,
            headers: section.headers,
        });
    }
    rules.globs = GlobSet::new(globs);
    Ok(rules)
}

/// A pattern of paths, which is read as a pattern of canonical paths.
pub(in crate::policy) struct CanonicalGlob;

impl Form<Glob> for CanonicalGlob {
    fn read(value: &Value, kind: Kind) -> Result<Glob, PolicyError> {
        let escaping = match kind {
            Kind::Bucket => Escaping::Strict,
            Kind::Http => Escaping::Unreserved,
        };
        let glob: Glob = PathGlob::read(value, kind)?;
        canonical(&glob, escaping)
            .ok_or_else(|| PolicyError::unexpected(value, "a path without broken escapes"))
    }
}

/// The pattern in the spelling of canonical paths; `None` if it contains text that no path has.
fn canonical(pattern: &Glob, escaping: Escaping) -> Option<Glob> {
    let mut canonical = Vec::with_capacity(pattern.as_str().len());
    for (number, literal) in pattern.as_str().split('*').enumerate() {
        if number > 0 {
            canonical.push(b'*');
        }
        append_literal(&mut canonical, literal.as_bytes(), escaping)?;
    }
    Some(Glob::new(std::str::from_utf8(&canonical).ok()?))
}

text!(
    /// A `Cache-Control`.
    Directives => String,
    "the directives of a Cache-Control, such as public, max-age=60",
    "^[-a-zA-Z0-9]+(=[-a-zA-Z0-9]+)?( *, *[-a-zA-Z0-9]+(=[-a-zA-Z0-9]+)?)*$",
    |text| {
        let is_directive = |directive: &str| {
            let directive = directive.trim_matches(' ');
            let (name, argument) = directive.split_once('=').unwrap_or((directive, "0"));
            is_token(name) && is_token(argument)
        };
        text.split(',').all(is_directive).then(|| text.to_owned())
    }
);

/// Headers with their values.
pub(in crate::policy) struct HeaderValues;

/// The value of a header.
pub(in crate::policy) struct FieldValue;

impl Form<String> for FieldValue {
    fn read(value: &Value, _: Kind) -> Result<String, PolicyError> {
        let text = value.as_str().filter(|text| is_field_value(text));
        let text = text.ok_or_else(|| PolicyError::unexpected(value, FIELD_VALUE))?;
        Ok(text.to_owned())
    }
}

impl Form<Vec<(String, String)>> for HeaderValues {
    fn read(value: &Value, kind: Kind) -> Result<Vec<(String, String)>, PolicyError> {
        let mut headers = Vec::new();
        for (name, value) in object(value)? {
            let lower = HeaderName::read(&Value::from(name.as_str()), kind)
                .ok()
                .filter(|lower| !is_reserved(lower))
                .ok_or_else(|| {
                    let expected = "a header that a response may simply be given: not one of the \
                                    connection's, the body's, the cache's or the filter's own";
                    PolicyError::new(name, format!("expected {expected}"))
                })?;
            let text = read_within::<String, FieldValue>(name, value, kind)?;
            headers.push((lower, text));
        }
        Ok(headers)
    }
}

/// Description of a header's value, for error messages.
const FIELD_VALUE: &str = "visible ASCII characters and spaces between them";

/// Whether a rule must not add a header to responses: the header says how to read or cache a response, or it is the
/// filter's own.
fn is_reserved(name: &str) -> bool {
    const RESERVED: [&str; 23] = [
        "age",
        "cache-control",
        "cache-status",
        "cdn-cache-control",
        "connection",
        "content-encoding",
        "content-length",
        "content-range",
        "date",
        "etag",
        "expires",
        "keep-alive",
        "last-modified",
        "proxy-authenticate",
        "proxy-connection",
        "set-cookie",
        "surrogate-control",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "vary",
        "www-authenticate",
    ];
    RESERVED.contains(&name) || name.starts_with("x-sluice-") || name.starts_with("x-envoy-")
}

fn is_field_value(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.trim_matches(' ') == text
}
