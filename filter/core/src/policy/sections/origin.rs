// SPDX-License-Identifier: Apache-2.0
//! The section `origin`: what stands behind the edge.

use serde_json::Value;

use crate::http::url::escaping::escape_key;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind, object, read_within, words};
use crate::policy::forms::names::{Authority, BucketName, KeyPrefix};
use crate::policy::forms::section::{missing_field, section};
use crate::policy::sections::key::KeyPolicy;

/// What stands behind the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An S3-compatible bucket.
    Bucket(BucketOrigin),
    /// Any HTTP server.
    Http(HttpOrigin),
}

impl Origin {
    /// Whether it is a bucket.
    pub const fn is_bucket(&self) -> bool {
        matches!(self, Self::Bucket(_))
    }
}

/// How a bucket is addressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketOrigin {
    /// Value of `Host` towards the bucket.
    pub authority: String,
    /// What precedes the client's canonical path towards the origin: already percent-encoded,
    /// starts with `/` unless empty, never ends with one (`/BUCKET/PREFIX`, or `/PREFIX` with virtual hosts).
    pub path_prefix: String,
    /// How many bytes of the decoded object key the key prefix takes, its trailing slash included
    /// (`PREFIX/`; 0 without a prefix; the bucket's name does not count).
    pub prefix_bytes: usize,
}

/// How an HTTP origin is addressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpOrigin {
    /// Replaces the client's `Host` towards the origin.
    pub authority: Option<String>,
}

/// The section as it is written; the field `kind` says which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) enum OriginSection {
    Bucket(BucketSection),
    Http(HttpSection),
}

section! {
    /// An S3-compatible bucket.
    pub(in crate::policy) struct BucketSection {
        /// Which kind of origin it is.
        kind: Kind,
        /// The bucket's name. In a file the edge fills it in, and authority too.
        bucket: String as BucketName,
        /// The prefix of every object key; a slash at its end is implied.
        prefix: String as KeyPrefix = String::new(),
        /// Whether the bucket's name stands in the path or in the host.
        addressing: Addressing = Addressing::Path,
        /// Value of Host towards the bucket. With addressing virtual_host it begins with the bucket's
        /// name.
        authority: String as Authority,
    }
}

section! {
    /// Any HTTP server.
    pub(in crate::policy) struct HttpSection {
        /// Which kind of origin it is.
        kind: Kind,
        /// Replaces the client's Host towards the origin. Default: Host goes on as it came.
        authority: Option<String> as Option<Authority>,
    }
}

/// Where a bucket's name stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Addressing {
    Path,
    VirtualHost,
}

words!(Addressing { Path = "path", VirtualHost = "virtual_host" });

impl Kind {
    /// The kind of origin in a document, which is not checked: reading the document will.
    pub(in crate::policy) fn of(document: &Value) -> Self {
        match document.pointer("/origin/kind").and_then(Value::as_str) {
            Some("http") => Self::Http,
            _ => Self::Bucket,
        }
    }
}

impl Form<Self> for OriginSection {
    fn read(value: &Value, kind: Kind) -> Result<Self, PolicyError> {
        // What is wrong with the kind is said before what another kind does not have.
        let named = object(value)?.get("kind");
        let named = named.ok_or_else(|| missing_field("kind"))?;
        match read_within::<Kind, Kind>("kind", named, kind)? {
            Kind::Bucket => BucketSection::read(value, kind).map(Self::Bucket),
            Kind::Http => HttpSection::read(value, kind).map(Self::Http),
        }
    }
}

impl OriginSection {
    /// The origin of a policy with that key.
    pub(in crate::policy) fn compile(self, key: &KeyPolicy) -> Result<Origin, PolicyError> {
        match self {
            Self::Bucket(section) => section.compile(key.max_bytes).map(Origin::Bucket),
            Self::Http(section) if !key.host && section.authority.is_none() => {
                let message = "false: expected true, since without origin.authority the origin sees the \
                               client's Host";
                Err(PolicyError::new("key.host", message))
            }
            Self::Http(section) => Ok(Origin::Http(HttpOrigin {
                authority: section.authority,
            })),
        }
    }
}

impl BucketSection {
    fn compile(self, max_bytes: usize) -> Result<BucketOrigin, PolicyError> {
        let Self {
            bucket,
            prefix,
            addressing,
            authority,
            ..
        } = self;
        let prefix_bytes = match prefix.len() {
            0 => 0,
            bytes => bytes + 1,
        };
        if prefix_bytes >= max_bytes {
            let expected = format!("fewer than key.max_bytes, {max_bytes}, with its slash");
            return Err(PolicyError::text("origin.prefix", &prefix, &expected));
        }
        let mut path_prefix = String::new();
        match addressing {
            Addressing::Path => path_prefix = format!("/{bucket}"),
            // NB: on a host that names no bucket, the client's first segment would name one.
            Addressing::VirtualHost if !names_bucket(&authority, &bucket) => {
                let expected = format!("{bucket}.HOST, since addressing is virtual_host");
                return Err(PolicyError::text("origin.authority", &authority, &expected));
            }
            Addressing::VirtualHost => {}
        }
        if !prefix.is_empty() {
            path_prefix.push('/');
            path_prefix.push_str(&escape_key(&prefix));
        }
        Ok(BucketOrigin {
            authority,
            path_prefix,
            prefix_bytes,
        })
    }
}

/// Whether the host is the bucket's, by a name below the endpoint's or by the bucket's own.
fn names_bucket(authority: &str, bucket: &str) -> bool {
    authority
        .split_at_checked(bucket.len())
        .is_some_and(|(host, rest)| {
            host.eq_ignore_ascii_case(bucket)
                && matches!(rest.bytes().next(), None | Some(b'.' | b':'))
        })
}
