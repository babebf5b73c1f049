// SPDX-License-Identifier: Apache-2.0
//! What ORIGIN makes of a bucket's response before anybody else sees it: a media type for an object
//! that lacks one, and a page of the edge's own in the place of an error's XML.

use sluice_core::policy::{Origin, Policy};
use sluice_core::site::cors::CORS_PREFIX;
use sluice_core::site::error_page::{self, MEDIA_TYPE, REPLACED_HEADERS};
use sluice_core::site::media_type::missing_media_type;

use crate::headers::Headers;
use crate::host::{self, Map};

/// What becomes of a response's body.
#[derive(Debug, Default)]
pub enum Body {
    /// It goes on as it is.
    #[default]
    Kept,
    /// This page goes on in its place.
    Replaced(Vec<u8>),
    /// The page has gone on; the rest is dropped.
    Dropped,
}

impl Body {
    /// Handles a part of `size` bytes that passes; gives the size that it has then.
    pub fn pass(&mut self, size: usize) -> host::Result<usize> {
        match self {
            Self::Kept => Ok(size),
            Self::Replaced(page) => {
                let length = page.len();
                host::replace_response_body(size, page)?;
                *self = Self::Dropped;
                Ok(length)
            }
            Self::Dropped => host::drop_response_body(size).map(|()| 0),
        }
    }
}

/// A request to the origin, as far as it tells what its response means.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// `:path`.
    pub path: &'a str,
    /// Whether the method is `HEAD`.
    pub head: bool,
}

/// Cleans the response's headers; `ends` if no body follows.
pub fn clean_response(
    policy: &Policy,
    asked: Asked<'_>,
    headers: &Headers,
    status: u16,
    ends: bool,
) -> host::Result<Body> {
    if policy.site.cors.is_some() {
        remove_all(headers, |name| name.starts_with(CORS_PREFIX))?;
    }
    if !matches!(policy.origin, Origin::Bucket(_)) {
        return Ok(Body::Kept);
    }
    if error_page::replaces(status) {
        return replace_error(asked.head, headers, status, ends);
    }
    let current = headers.text("content-type");
    // What a 304 does not say stays as it is stored.
    if (status != 304 || current.is_some())
        && let Some(media_type) = missing_media_type(&policy.site, asked.path, current)
    {
        host::set_header(Map::Response, "content-type", media_type)?;
    }
    Ok(Body::Kept)
}

fn replace_error(head: bool, headers: &Headers, status: u16, ends: bool) -> host::Result<Body> {
    remove_all(headers, |name| REPLACED_HEADERS.contains(&name))?;
    if ends && !head {
        // A filter cannot give a body to what has none.
        host::remove_header(Map::Response, "content-type")?;
        host::set_header(Map::Response, "content-length", "0")?;
        return Ok(Body::Kept);
    }
    let page = error_page::page(status);
    host::set_header(Map::Response, "content-type", MEDIA_TYPE)?;
    host::set_header(Map::Response, "content-length", &page.len().to_string())?;
    Ok(Body::Replaced(page.into_bytes()))
}

fn remove_all(headers: &Headers, goes: impl Fn(&str) -> bool) -> host::Result<()> {
    for (name, _) in headers.iter().filter(|(name, _)| goes(name)) {
        host::remove_header(Map::Response, name)?;
    }
    Ok(())
}
