// SPDX-License-Identifier: Apache-2.0
//! A media type for objects that were uploaded without one.

use crate::policy::WebsitePolicy;

/// What S3's clients and servers write for "none".
pub const NONE: [&str; 2] = ["application/octet-stream", "binary/octet-stream"];

/// What the web is made of, by extension (IANA's registry; RFC 9239 for scripts).
const KNOWN: [(&str, &str); 48] = [
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("css", "text/css; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("eot", "application/vnd.ms-fontobject"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("glb", "model/gltf-binary"),
    ("gz", "application/gzip"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/vnd.microsoft.icon"),
    ("ics", "text/calendar; charset=utf-8"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("jsonld", "application/ld+json"),
    ("jxl", "image/jxl"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("m4a", "audio/mp4"),
    ("map", "application/json"),
    ("md", "text/markdown; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("opus", "audio/ogg"),
    ("otf", "font/otf"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("ts", "video/mp2t"),
    ("ttf", "font/ttf"),
    ("txt", "text/plain; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webmanifest", "application/manifest+json"),
    ("webp", "image/webp"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("xhtml", "application/xhtml+xml"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

impl WebsitePolicy {
    /// Whether any object gets a media type that it was uploaded without.
    pub fn guesses_media_types(&self) -> bool {
        self.guess_content_type || !self.content_types.is_empty()
    }
}

/// The media type that replaces `current`, the response's own, for an object of that path (with or
/// without a query); `None` if it stays.
pub fn missing_media_type<'a>(
    site: &'a WebsitePolicy,
    path: &str,
    current: Option<&str>,
) -> Option<&'a str> {
    if !site.guesses_media_types() {
        return None;
    }
    let said = |current: &str| {
        let kind = current.split(';').next().unwrap_or_default().trim();
        !kind.is_empty() && !NONE.iter().any(|none| kind.eq_ignore_ascii_case(none))
    };
    if current.is_some_and(said) {
        return None;
    }
    let extension = extension(path)?.to_ascii_lowercase();
    let listed = site
        .content_types
        .iter()
        .find(|(name, _)| *name == extension);
    if let Some((_, media_type)) = listed {
        return Some(media_type);
    }
    let place = KNOWN
        .binary_search_by(|(name, _)| (*name).cmp(&extension))
        .ok();
    let known = place.and_then(|place| KNOWN.get(place));
    known
        .filter(|_| site.guess_content_type)
        .map(|(_, media_type)| *media_type)
}

fn extension(path: &str) -> Option<&str> {
    let path = path.split(['?', '#']).next()?;
    let name = path.rsplit('/').next()?;
    name.rsplit_once('.').map(|(_, extension)| extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_so_that_it_can_be_searched() {
        assert!(KNOWN.is_sorted_by(|(before, _), (after, _)| before < after));
    }
}
