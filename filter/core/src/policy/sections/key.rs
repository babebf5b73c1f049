// SPDX-License-Identifier: Apache-2.0
//! The section `key`: how the cache key and the origin's path are made from a request's URL.

use serde_json::{Map, Value};

use crate::http::url::escaping::{Escaping, append_path, escape_key};
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Bytes, Form, Kind, words};
use crate::policy::forms::names::{
    HeaderName, NamePattern, ObjectName, ParameterName, ParameterPattern, StripPrefix,
};
use crate::policy::forms::section::section;

/// S3's own limit of an object key, in bytes.
const MAX_OBJECT_KEY_BYTES: usize = 1_024;

section! {
    /// How the cache key and the origin's path are made from a request's URL.
    pub struct KeyPolicy {
        /// Whether the client's Host is part of the key. Default: false for a bucket, true for an
        /// HTTP origin.
        host: bool = true; bucket: false,
        /// Whether // in a path is one separator. Default: true for a bucket, false for an HTTP
        /// origin.
        merge_slashes: bool = false; bucket: true,
        /// How the query string is treated, in the key and towards the origin alike.
        query: QueryRule as Query,
        /// Longest decoded object key of a bucket (at most 1024), or longest path with its query of an HTTP origin,
        /// in bytes. A request with a longer one is answered with 414. Default: 1024 for a bucket, 8000 for an HTTP
        /// origin.
        max_bytes: usize as Bytes<1, 65_536> = 8_000; bucket: MAX_OBJECT_KEY_BYTES,
        /// Bucket only: the object that a path ending in a slash stands for. Default: none.
        index_document: Option<String> as Option<ObjectName>,
        /// A prefix that is removed from every path: with /static, /static/a.js is a.js of the
        /// bucket or /a.js of an HTTP origin. A path that is not below the prefix is answered with
        /// 404. Default: none.
        strip_prefix: String as StripPrefix = String::new(),
        /// Request headers whose values are part of the key, whether or not Vary names them. The origin gets the
        /// values of the key. Default: x-forwarded-proto for an HTTP origin, none for a bucket.
        headers: Vec<String> as Vec<HeaderName> = vec!["x-forwarded-proto".to_owned()]; bucket: Vec::new(),
    }
}

impl KeyPolicy {
    /// Whether the policy puts the value of that request header into the key, whatever responses say.
    pub fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|listed| listed == name)
    }

    /// Refuses fields that an origin of that kind does not have, and spells the prefix like canonical paths: it
    /// starts with `/` unless empty, and never ends with `/`.
    pub(in crate::policy) fn for_kind(mut self, kind: Kind) -> Result<Self, PolicyError> {
        if kind == Kind::Bucket {
            if self.max_bytes > MAX_OBJECT_KEY_BYTES {
                let max_bytes = self.max_bytes;
                let message =
                    format!("{max_bytes}: expected at most {MAX_OBJECT_KEY_BYTES} for a bucket");
                return Err(PolicyError::new("max_bytes", message));
            }
            self.strip_prefix = escape_key(&self.strip_prefix);
            return Ok(self);
        }
        if let Some(name) = &self.index_document {
            let expected = "none for an HTTP origin";
            return Err(PolicyError::text("index_document", name, expected));
        }
        if !self.strip_prefix.is_empty() {
            self.strip_prefix = canonical(&self.strip_prefix, self.merge_slashes)?;
        }
        Ok(self)
    }
}

fn canonical(prefix: &str, merge_slashes: bool) -> Result<String, PolicyError> {
    let mut canonical = Vec::new();
    let path = prefix.as_bytes();
    append_path(&mut canonical, path, Escaping::Unreserved, merge_slashes)
        .ok()
        .and_then(|()| String::from_utf8(canonical).ok())
        .ok_or_else(|| {
            let expected = "a path that is percent-encoded as in a URL";
            PolicyError::text("strip_prefix", prefix, expected)
        })
}

/// Treatment of the query string, in the key and towards the origin alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryRule {
    /// Only the listed parameters stay, sorted by name.
    Drop {
        /// Names that stay.
        allow: Vec<String>,
    },
    /// All parameters stay in the client's order, except the removed ones.
    Keep {
        /// Names, or prefixes, that are removed.
        remove: Vec<NamePattern>,
    },
    /// All parameters stay, sorted by name, except the removed ones.
    Sort {
        /// Names, or prefixes, that are removed.
        remove: Vec<NamePattern>,
    },
}

section! {
    /// How the query string is treated, in the key and towards the origin alike.
    pub(in crate::policy) struct Query {
        /// drop: only the parameters of allow stay, sorted by name; keep: all stay, in the client's order; sort: all
        /// stay, sorted by name. Default: drop for a bucket, which accepts no other mode; keep for an HTTP origin.
        mode: QueryMode = QueryMode::Keep; bucket: QueryMode::Drop,
        /// With mode drop: the parameters that stay.
        allow: Vec<String> as Vec<ParameterName> = Vec::new(),
        /// With modes keep and sort: the parameters that are removed. A trailing * matches any rest of the name:
        /// utm_*.
        remove: Vec<NamePattern> as Vec<ParameterPattern> = Vec::new(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum QueryMode {
    Drop,
    Keep,
    Sort,
}

words!(QueryMode { Drop = "drop", Keep = "keep", Sort = "sort" });

impl Form<QueryRule> for Query {
    fn read(value: &Value, kind: Kind) -> Result<QueryRule, PolicyError> {
        let Self {
            mode,
            allow,
            remove,
        } = <Self as Form<Self>>::read(value, kind)?;
        if kind == Kind::Bucket && mode != QueryMode::Drop {
            let message = "expected drop for a bucket, with the parameters that stay in allow: others \
                           reach what is not for clients, such as ?acl";
            return Err(PolicyError::new("mode", message));
        }
        let refuse_list = |name, mode| {
            let message = format!("expected no such list with mode {mode}");
            Err(PolicyError::new(name, message))
        };
        match mode {
            QueryMode::Drop if !remove.is_empty() => refuse_list("remove", "drop"),
            QueryMode::Keep if !allow.is_empty() => refuse_list("allow", "keep"),
            QueryMode::Sort if !allow.is_empty() => refuse_list("allow", "sort"),
            QueryMode::Drop => Ok(QueryRule::Drop { allow }),
            QueryMode::Keep => Ok(QueryRule::Keep { remove }),
            QueryMode::Sort => Ok(QueryRule::Sort { remove }),
        }
    }

    fn absent(kind: Kind) -> Result<Option<QueryRule>, PolicyError> {
        Self::read(&Value::Object(Map::new()), kind).map(Some)
    }
}
