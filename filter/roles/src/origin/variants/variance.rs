// SPDX-License-Identifier: Apache-2.0
//! Variants: the content coding that is requested from the origin, and the headers that its response varies with.

use sluice_core::freshness::UncacheableReason;
use sluice_core::http::syntax::field_value::{FieldValue, JoinedValue};
use sluice_core::internal_headers::{COMPRESS_HEADER, COMPRESS_TYPED, COMPRESS_UNTYPED};
use sluice_core::key::qualifiers;
use sluice_core::key::vary::{self, ACCEPT_ENCODING, VaryNames};
use sluice_core::policy::{Origin, Policy};
use sluice_core::website::media_type::missing_media_type;

use crate::request::headers::set_or_remove;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// Requests the content coding in the key of `path`, for a request that fills the store.
pub fn ask(host: &dyn Host, policy: &Policy, path: &str, headers: &Headers) -> host::Result<()> {
    let mut selected = vary::selected(path);
    let encoding = selected.find(|selected| selected.name == ACCEPT_ENCODING);
    let encoding = encoding.map(|selected| selected.value);
    let compression = &policy.compression;
    let chosen = encoding.is_some();
    let wanted = match encoding {
        Some(coding) => coding,
        // The edge alone decides on compression.
        None if compression.enabled || matches!(policy.origin, Origin::Bucket(_)) => None,
        None => {
            let accepted = headers.joined(ACCEPT_ENCODING);
            let codings = compression.accepted(accepted.as_ref().map(JoinedValue::value));
            codings.map(|codings| codings.replace(',', ", ").into())
        }
    };
    set_or_remove(host, headers, ACCEPT_ENCODING, wanted.as_deref())?;
    if compression.enabled && chosen {
        let guessed = missing_media_type(&policy.website, path, None);
        let untyped = matches!(policy.origin, Origin::Bucket(_))
            && guessed.is_some_and(|media_type| compression.compresses(media_type));
        let wanted = if untyped {
            COMPRESS_UNTYPED
        } else {
            COMPRESS_TYPED
        };
        host.set_header(Map::Request, COMPRESS_HEADER, wanted)?;
    }
    Ok(())
}

/// Turns the headers of a response to HEAD into those of the compressed object, because a response without a body is
/// not compressed here. Removes the length and weakens the tag (RFC 9110, 8.6). Returns false if the object would not
/// be compressed.
pub fn blur_head(
    host: &dyn Host,
    policy: &Policy,
    key: &str,
    headers: &Headers,
) -> host::Result<bool> {
    let mut names = qualifiers::qualifiers(key).map(|(name, _)| name);
    let chosen = policy.compression.enabled && names.any(|name| name == qualifiers::CODING);
    if !chosen || headers.has("content-encoding") || !headers.is(":status", "200") {
        return Ok(false);
    }
    host.remove_header(Map::Response, "content-length")?;
    let etag = headers.get("etag").map(FieldValue::bytes);
    if let Some(strong) = etag.filter(|tag| !tag.starts_with(b"W/")) {
        host.set_header(Map::Response, "etag", [b"W/", strong].concat())?;
    }
    Ok(true)
}

/// The request headers that a response depends on, beside those in its key.
#[derive(Debug)]
pub struct Variance<'a> {
    /// `Vary`, its lines joined by commas. An empty one counts as absent.
    vary: Option<JoinedValue<'a>>,
    /// The headers that keys of the URL lack, or the reason why keys with them would not do.
    fit: Result<VaryNames, UncacheableReason>,
}

impl<'a> Variance<'a> {
    /// The variance of a response with these headers, requested under `key`.
    pub fn of(policy: &Policy, key: &str, headers: &'a Headers) -> Self {
        let said = headers.joined("vary");
        let said = said.filter(|said| !said.value().bytes().trim_ascii().is_empty());
        let vary = match (said, headers.has("content-encoding")) {
            // An origin that encodes should name this header.
            (Some(said), true) => {
                let coding = ACCEPT_ENCODING.as_bytes();
                Some([said.value().bytes(), b", ", coding].concat().into())
            }
            (None, true) => Some(ACCEPT_ENCODING.into()),
            (said, false) => said,
        };
        let fit = vary::fit(policy, key, vary.as_ref().map(JoinedValue::value));
        Self { vary, fit }
    }

    /// The names in `Vary` that the key lacks, for the verdict on the response.
    pub fn unkeyed(&self) -> Option<FieldValue<'_>> {
        match &self.fit {
            Ok(_) => self.lesson().map(|names| names.as_str().into()),
            Err(UncacheableReason::UnreadableHeader) => self.vary(),
            Err(_) => Some("*".into()),
        }
    }

    /// The headers that keys of the URL should contain from now on.
    pub fn lesson(&self) -> Option<&VaryNames> {
        let names = self.fit.as_ref().ok();
        names.filter(|names| !names.is_empty())
    }

    /// Whether the response depends on the request's credentials.
    pub fn names_credentials(&self) -> bool {
        vary::names_credentials(self.vary())
    }

    /// Whether the response varies with all of these headers.
    pub fn names_all(&self, headers: &[String]) -> bool {
        vary::names_all(self.vary(), headers)
    }

    /// The `Vary` that clients see.
    pub fn vary(&self) -> Option<FieldValue<'_>> {
        self.vary.as_ref().map(JoinedValue::value)
    }
}
