// SPDX-License-Identifier: Apache-2.0
//! Variants, where they meet Envoy: in a request's key, in what the origin is asked, in what is stored
//! of its `Vary`, and in what clients are told.

use std::borrow::Cow;
use std::rc::Rc;

use sluice_core::http::accept_encoding::Coding;
use sluice_core::key::CanonicalTarget;
use sluice_core::key::qualifiers;
use sluice_core::key::vary::{self, ACCEPT_ENCODING, Fit, TooLong, VaryNames};
use sluice_core::link::{COMPRESS_HEADER, COMPRESS_TYPED, COMPRESS_UNTYPED};
use sluice_core::policy::{Origin, Policy};
use sluice_core::site::media_type::missing_media_type;

use crate::headers::Headers;
use crate::host::{self, Map};
use crate::stream::Stream;
use crate::worker::Worker;

/// Name of the response header that keeps the origin's own `Vary` in the store.
pub const STORED_VARY: &str = "x-sluice-vary";

impl Worker {
    /// Qualifies the URL of `target` by all that tells its responses apart.
    ///
    /// # Errors
    /// A header that it varies with is too long for a key.
    pub fn qualify(
        &mut self,
        policy: &Policy,
        target: &mut CanonicalTarget,
        headers: &Headers,
    ) -> Result<(), TooLong> {
        if let Some(coding) = compressed(policy, target, headers) {
            target.qualify(qualifiers::CODING, coding.token());
        }
        match self.varies(target.url()) {
            Some(names) => vary::qualify(policy, target, &names, |name| headers.joined(name)),
            None => Ok(()),
        }
    }
}

/// The coding in which a response is compressed on its way into the cache.
fn compressed(policy: &Policy, target: &CanonicalTarget, headers: &Headers) -> Option<Coding> {
    let compression = &policy.compression;
    if !compression.applies(policy.client_path(target.origin_path())) {
        return None;
    }
    compression.negotiate(headers.joined(ACCEPT_ENCODING).as_deref())
}

/// Gives a request that fills the store the headers that its `path`, the store's, has been made of, so
/// that the response is what the key says.
pub fn ask(policy: &Policy, path: &str, headers: &Headers) -> host::Result<()> {
    let mut encoding = None;
    for selected in vary::selected(path) {
        if selected.name == ACCEPT_ENCODING {
            encoding = Some(selected.value);
            continue;
        }
        let (name, wanted) = (&selected.name, selected.value.as_deref());
        set_or_remove(headers, name, wanted)?;
    }
    let compression = &policy.compression;
    let chosen = encoding.is_some();
    let wanted = match encoding {
        Some(coding) => coding,
        // The edge alone decides.
        None if compression.enabled || matches!(policy.origin, Origin::Bucket(_)) => None,
        None => {
            let coding = compression.negotiate(headers.joined(ACCEPT_ENCODING).as_deref());
            coding.map(|coding| coding.token().to_owned())
        }
    };
    set_or_remove(headers, ACCEPT_ENCODING, wanted.as_deref())?;
    if compression.enabled && chosen {
        let guessed = missing_media_type(&policy.site, path, None);
        let untyped = matches!(policy.origin, Origin::Bucket(_))
            && guessed.is_some_and(|media_type| compression.compresses(media_type));
        let wanted = if untyped {
            COMPRESS_UNTYPED
        } else {
            COMPRESS_TYPED
        };
        host::set_header(Map::Request, COMPRESS_HEADER, wanted)?;
    }
    Ok(())
}

fn set_or_remove(headers: &Headers, name: &str, wanted: Option<&str>) -> host::Result<()> {
    match wanted {
        // NB: it may have been taken out meanwhile, and of several lines one must be left.
        Some(value) => {
            host::remove_header(Map::Request, name)?;
            host::set_header(Map::Request, name, value)
        }
        None if headers.has(name) => host::remove_header(Map::Request, name),
        None => Ok(()),
    }
}

/// Takes from the response to a HEAD what compression changes, since nothing compresses it: a length, and a tag that
/// stands for these very bytes (RFC 9110, 8.6). False where nothing would be compressed.
pub fn blur_head(policy: &Policy, key: &str, headers: &Headers) -> host::Result<bool> {
    let mut names = qualifiers::qualifiers(key).map(|(name, _)| name);
    let chosen = policy.compression.enabled && names.any(|name| name == qualifiers::CODING);
    if !chosen || headers.has("content-encoding") || headers.text(":status") != Some("200") {
        return Ok(false);
    }
    host::remove_header(Map::Response, "content-length")?;
    if let Some(strong) = headers.text("etag").filter(|tag| !tag.starts_with("W/")) {
        host::set_header(Map::Response, "etag", &format!("W/{strong}"))?;
    }
    Ok(true)
}

/// What a response to a request under some key depends on.
#[derive(Debug)]
pub struct Variance<'a> {
    /// `Vary`, its lines joined by commas.
    vary: Option<Cow<'a, str>>,
    fit: Fit,
}

impl<'a> Variance<'a> {
    /// Of a response with these headers, asked for under `key`.
    pub fn of(policy: &Policy, key: &str, headers: &'a Headers) -> Self {
        let vary = match (headers.joined("vary"), headers.has("content-encoding")) {
            // An origin that encodes says so, or should.
            (Some(vary), true) => Some(format!("{vary}, {ACCEPT_ENCODING}").into()),
            (None, true) => Some(ACCEPT_ENCODING.into()),
            (vary, false) => vary,
        };
        let fit = vary::fit(policy, key, vary.as_deref());
        Self { vary, fit }
    }

    /// The `Vary` of what the key does not have, for the verdict on the response.
    pub fn unkeyed(&self) -> Option<&str> {
        match &self.fit {
            Fit::Keyed => None,
            Fit::Unkeyed(names) => Some(names.as_str()),
            Fit::Refused => Some("*"),
        }
    }

    /// What the keys of the URL should have from now on.
    pub fn lesson(&self) -> Option<&VaryNames> {
        match &self.fit {
            Fit::Unkeyed(names) => Some(names),
            Fit::Keyed | Fit::Refused => None,
        }
    }

    /// Hides `Vary` from the store, for which the key says it all.
    pub fn store(&self, headers: &Headers) -> host::Result<()> {
        if let Some(vary) = &self.vary {
            host::set_header(Map::Response, STORED_VARY, vary)?;
        }
        if headers.has("vary") {
            host::remove_header(Map::Response, "vary")?;
        }
        Ok(())
    }
}

/// Tells the client what the response, which had these headers, depends on.
pub fn restore(stream: &Rc<Stream>, headers: &Headers) -> host::Result<()> {
    let policy = &stream.policy.policy;
    let path = policy.client_path(stream.target.origin_path());
    let chooses = policy.compression.applies(path);
    let stored = headers.joined(STORED_VARY);
    if stored.is_some() {
        host::remove_header(Map::Response, STORED_VARY)?;
    } else if !chooses {
        return Ok(());
    }
    let already = headers.joined("vary");
    match vary::told(policy, stored.as_deref(), already.as_deref(), chooses) {
        Some(told) => host::add_header(Map::Response, "vary", &told),
        None => Ok(()),
    }
}
