// SPDX-License-Identifier: Apache-2.0
//! The section `origin`: the server behind the edge.

use serde_json::Value;

use crate::http::url::escaping::escape_key;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind, object, read_within, words};
use crate::policy::forms::names::{Authority, BucketName, KeyPrefix};
use crate::policy::forms::section::{missing_field, section};
use crate::policy::sections::key::KeyPolicy;

/// Origin behind the edge.
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

    /// The beginning of every path towards it, in front of the client's path ([`BucketOrigin::path_prefix`]).
    pub fn path_prefix(&self) -> &str {
        match self {
            Self::Bucket(bucket) => &bucket.path_prefix,
            Self::Http(_) => "",
        }
    }
}

/// How a bucket is addressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketOrigin {
    /// Value of `Host` towards the bucket.
    pub authority: String,
    /// Beginning of every path towards the bucket, in front of the client's canonical path. It is already
    /// percent-encoded, starts with `/` unless empty, and never ends with `/` (`/BUCKET/PREFIX`, or `/PREFIX` with
    /// virtual hosts).
    pub path_prefix: String,
    /// The beginning of [`Self::path_prefix`] in front of the key prefix: `/BUCKET`, or empty with virtual hosts.
    pub root: String,
    /// Length of the key prefix in the decoded object key, in bytes, its trailing slash included (`PREFIX/`; 0
    /// without a prefix; the bucket's name does not count).
    pub prefix_bytes: usize,
}

/// How an HTTP origin is addressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpOrigin {
    /// Value of `Host` towards the origin, in place of the client's.
    pub authority: Option<String>,
}

/// The section as operators write it; the field `kind` decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) enum OriginSection {
    Bucket(BucketSection),
    Http(HttpSection),
}

section! {
    /// An S3-compatible bucket.
    pub(in crate::policy) struct BucketSection {
        /// Kind of the origin.
        kind: Kind,
        /// The bucket's name. In a file, the edge fills in this field and authority.
        bucket: String as BucketName,
        /// The prefix of every object key; a slash at its end is implied.
        prefix: String as KeyPrefix = String::new(),
        /// Whether the bucket's name is in the path or in the host.
        addressing: Addressing = Addressing::Path,
        /// Value of Host towards the bucket. With addressing virtual_host it begins with the bucket's
        /// name.
        authority: String as Authority,
    }
}

section! {
    /// Any HTTP server.
    pub(in crate::policy) struct HttpSection {
        /// Kind of the origin.
        kind: Kind,
        /// Value of Host towards the origin, in place of the client's. Default: the client's Host, unchanged.
        authority: Option<String> as Option<Authority>,
    }
}

/// Place of a bucket's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Addressing {
    Path,
    VirtualHost,
}

words!(Addressing { Path = "path", VirtualHost = "virtual_host" });

impl Kind {
    /// The kind of the origin in a document. An invalid kind is not refused here, but when the document is read.
    pub(in crate::policy) fn of(document: &Value) -> Self {
        match document.pointer("/origin/kind").and_then(Value::as_str) {
            Some("http") => Self::Http,
            _ => Self::Bucket,
        }
    }
}

impl Form<Self> for OriginSection {
    fn read(value: &Value, kind: Kind) -> Result<Self, PolicyError> {
        // An invalid kind is reported before fields that another kind does not have.
        let named = object(value)?.get("kind");
        let named = named.ok_or_else(|| missing_field("kind"))?;
        match read_within::<Kind, Kind>("kind", named, kind)? {
            Kind::Bucket => BucketSection::read(value, kind).map(Self::Bucket),
            Kind::Http => HttpSection::read(value, kind).map(Self::Http),
        }
    }
}

impl OriginSection {
    /// Compiles the origin of a policy with that key.
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
        let mut root = String::new();
        match addressing {
            Addressing::Path => root = format!("/{bucket}"),
            // NB: on a host that names no bucket, the first segment of the client's path would name one.
            Addressing::VirtualHost if !names_bucket(&authority, &bucket) => {
                let expected = format!("{bucket}.HOST, since addressing is virtual_host");
                return Err(PolicyError::text("origin.authority", &authority, &expected));
            }
            Addressing::VirtualHost => {}
        }
        let mut path_prefix = root.clone();
        if !prefix.is_empty() {
            path_prefix.push('/');
            path_prefix.push_str(&escape_key(&prefix));
        }
        Ok(BucketOrigin {
            authority,
            path_prefix,
            root,
            prefix_bytes,
        })
    }
}

/// Whether the host is the bucket's: a name below the endpoint, or the bucket's own name.
fn names_bucket(authority: &str, bucket: &str) -> bool {
    authority
        .split_at_checked(bucket.len())
        .is_some_and(|(host, rest)| {
            host.eq_ignore_ascii_case(bucket)
                && matches!(rest.bytes().next(), None | Some(b'.' | b':'))
        })
}
