// SPDX-License-Identifier: Apache-2.0
//! The order of a purge call.

use serde_json::Value;

use crate::policy::purge::{Kind, Scope};
use crate::purge::orders::caller::Caller;
use crate::purge::orders::object::ObjectUrl;
use crate::purge::orders::order_error::{OrderError, shown};
use crate::purge::orders::url::UrlError;
use crate::purge::tables::table::MAX_PREFIX_BYTES;
use crate::purge::tags::{MAX_TAGS, TagHash, tags_named};

const SUBJECTS: &str = "url, prefix, surrogate_keys or everything";

/// Subject of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeSubject {
    /// URLs, prefixes, a site or everything.
    Scopes(Vec<Scope>),
    /// URLs of a site with one of these surrogate keys; the whole site if the index is incomplete.
    Tags {
        /// Name of the site.
        site: String,
        /// Surrogate keys.
        tags: Vec<TagHash>,
    },
}

/// Purge that a caller orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeOrder {
    /// Subject of the purge.
    pub what: PurgeSubject,
    /// Kind of the purge.
    pub kind: Kind,
}

impl PurgeOrder {
    /// Returns the order for a hard purge of one URL.
    ///
    /// # Errors
    /// The text is not a URL of this edge.
    pub fn of_url(caller: &Caller<'_>, url: &str) -> Result<Self, OrderError> {
        Ok(Self {
            what: read_url(caller, &Value::from(url))?,
            kind: Kind::Hard,
        })
    }

    /// Reads the body of a call: `{"url": …}`, `{"prefix": …}`, `{"surrogate_keys": […]}` or `{"everything": true}`.
    /// `"soft": true` and `"site": NAME` are optional.
    ///
    /// # Errors
    /// The body has another form, or the caller may not order this purge.
    pub fn parse(caller: Caller<'_>, body: &[u8]) -> Result<Self, OrderError> {
        let document: Value = serde_json::from_slice(body).map_err(|error| {
            OrderError::new("the body", &format!("{error}: expected a JSON object"))
        })?;
        let Some(fields) = document.as_object() else {
            return Err(OrderError::unexpected(
                "the body",
                &document,
                "a JSON object",
            ));
        };
        let caller = match fields.get("site") {
            Some(Value::String(name)) => caller.for_site(name)?,
            Some(other) => return Err(OrderError::unexpected("site", other, "the name of a site")),
            None => caller,
        };
        let (mut kind, mut what) = (Kind::Hard, None);
        for (name, value) in fields {
            let subject = match name.as_str() {
                "soft" => {
                    kind = read_kind(value)?;
                    continue;
                }
                "site" => continue,
                "url" => read_url(&caller, value)?,
                "prefix" => read_prefix(&caller, value)?,
                "surrogate_keys" => read_tags(&caller, value)?,
                "everything" if *value == Value::Bool(true) => {
                    PurgeSubject::Scopes(vec![caller.everything()])
                }
                "everything" => return Err(OrderError::unexpected(name, value, "true")),
                _ => {
                    let message = format!("unknown field: expected {SUBJECTS}, soft and site");
                    return Err(OrderError::new(&shown(name.clone()), &message));
                }
            };
            if what.replace(subject).is_some() {
                let message = format!("one too many: expected one of {SUBJECTS}");
                return Err(OrderError::new(name, &message));
            }
        }
        let missing = || OrderError::new("the body", &format!("{{}}: expected one of {SUBJECTS}"));
        Ok(Self {
            what: what.ok_or_else(missing)?,
            kind,
        })
    }
}

fn read_kind(value: &Value) -> Result<Kind, OrderError> {
    match value {
        Value::Bool(true) => Ok(Kind::Soft),
        Value::Bool(false) => Ok(Kind::Hard),
        _ => Err(OrderError::unexpected("soft", value, "true or false")),
    }
}

fn read_url(caller: &Caller<'_>, value: &Value) -> Result<PurgeSubject, OrderError> {
    let scopes_of = |object: &ObjectUrl| {
        let urls = object.urls(caller);
        urls.iter().map(|url| caller.scope_of(url)).collect()
    };
    if let Some(scopes) = read_object("url", value, scopes_of) {
        return scopes;
    }
    let url = read_with(|text| caller.url(text), "url", caller, value)?;
    Ok(PurgeSubject::Scopes(vec![caller.scope_of(&url)]))
}

fn read_prefix(caller: &Caller<'_>, value: &Value) -> Result<PurgeSubject, OrderError> {
    let scopes = match read_object("prefix", value, |object| object.scopes_below(caller)) {
        Some(scopes) => scopes?,
        None => {
            let prefixes = read_with(|text| caller.prefixes(text), "prefix", caller, value)?;
            PurgeSubject::Scopes(prefixes.into_iter().map(Scope::Prefix).collect())
        }
    };
    let is_long =
        |scope: &Scope| matches!(scope, Scope::Prefix(prefix) if prefix.len() > MAX_PREFIX_BYTES);
    if matches!(&scopes, PurgeSubject::Scopes(scopes) if scopes.iter().any(is_long)) {
        let expected = format!("at most {MAX_PREFIX_BYTES} bytes");
        return Err(OrderError::unexpected("prefix", value, &expected));
    }
    Ok(scopes)
}

/// Reads the name of an object; `None` if the value has another form.
fn read_object(
    name: &str,
    value: &Value,
    scopes_of: impl FnOnce(&ObjectUrl) -> Vec<Scope>,
) -> Option<Result<PurgeSubject, OrderError>> {
    let text = value.as_str().filter(|text| ObjectUrl::is_named_by(text))?;
    let scopes = ObjectUrl::parse(text).map_or_else(Vec::new, |object| scopes_of(&object));
    let expected = "s3://BUCKET/KEY, with the name of a site's bucket and its prefix";
    Some(match scopes.is_empty() {
        true => Err(OrderError::unexpected(name, value, expected)),
        false => Ok(PurgeSubject::Scopes(scopes)),
    })
}

fn read_with<T>(
    parse: impl FnOnce(&str) -> Result<T, UrlError>,
    name: &str,
    caller: &Caller<'_>,
    value: &Value,
) -> Result<T, OrderError> {
    let text = value.as_str().ok_or(UrlError::Form);
    text.and_then(parse).map_err(|error| {
        let mut expected = caller.accepted();
        if let UrlError::Rejected(rejection) = error {
            expected = format!("{expected} ({})", rejection.reason());
        }
        OrderError::unexpected(name, value, &expected)
    })
}

fn read_tags(caller: &Caller<'_>, value: &Value) -> Result<PurgeSubject, OrderError> {
    let Some(policy) = caller.policy() else {
        let message = "missing: expected the name of a site, whose surrogate keys these are";
        return Err(OrderError::new("site", message));
    };
    let refuse = || {
        let expected = format!("a list of 1 to {MAX_TAGS} texts without spaces or commas");
        OrderError::unexpected("surrogate_keys", value, &expected)
    };
    let is_tag = |tag: &&str| !tag.is_empty() && !tag.contains([' ', ',', '\t']);
    let items = value.as_array().filter(|items| !items.is_empty());
    let tags: Option<Vec<&str>> = items
        .ok_or_else(refuse)?
        .iter()
        .map(|item| item.as_str().filter(is_tag))
        .collect();
    let tags = tags_named(&tags.ok_or_else(refuse)?, caller.secret()).ok_or_else(refuse)?;
    Ok(PurgeSubject::Tags {
        site: policy.site.name.clone(),
        tags,
    })
}
