// SPDX-License-Identifier: Apache-2.0
//! Which responses are compressed on their way into the cache, so that each is compressed once.

use serde_json::Value;

use crate::http::accept_encoding::{Coding, accepted, negotiate};
use crate::http::syntax::field_value::FieldValue;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Bytes, Form, Kind, MAX_BYTES, words};
use crate::policy::forms::glob::Glob;
use crate::policy::forms::names::{MediaType, PathGlob};
use crate::policy::forms::section::section;

section! {
    /// Which responses are compressed on their way into the cache, once for each coding.
    pub struct CompressionPolicy {
        /// Whether responses are compressed. Default: true for a bucket; false for an HTTP origin, which may compress
        /// its own responses.
        enabled: bool = false; bucket: true,
        /// The codings that clients can get, the preferred one first. An HTTP origin that compresses its own
        /// responses gets an Accept-Encoding with the codings of this list that the client accepts.
        codings: Vec<Coding> as Codings = vec![Coding::Brotli, Coding::Zstd, Coding::Gzip],
        /// The smallest response that is compressed, in bytes.
        min_bytes: u64 as Bytes<0, MAX_BYTES> = 1_024,
        /// Media types of the responses that are compressed.
        content_types: Vec<String> as Vec<MediaType> = CONTENT_TYPES.map(str::to_owned).into(),
        /// Paths on which responses may be compressed, without bucket, prefix and query; * matches any characters,
        /// slashes included. On these paths each coding is a separate entry. Default: paths that end in a slash, have
        /// no extension, or have an extension of text.
        paths: Option<Vec<Glob>> as Option<Vec<PathGlob>>,
    }
}

words!(Coding { Brotli = "br", Zstd = "zstd", Gzip = "gzip" });

/// A list of codings, each once.
pub(in crate::policy) struct Codings;

impl Form<Vec<Coding>> for Codings {
    fn read(value: &Value, kind: Kind) -> Result<Vec<Coding>, PolicyError> {
        let codings: Vec<Coding> = Vec::<Coding>::read(value, kind)?;
        for (index, coding) in codings.iter().enumerate() {
            if codings.iter().take(index).any(|before| before == coding) {
                let path = format!("[{index}]");
                return Err(PolicyError::text(&path, coding.token(), "each coding once"));
            }
        }
        Ok(codings)
    }
}

impl CompressionPolicy {
    /// Whether the response on a client's canonical `path` (no bucket, no prefix, no query) may be compressed, so
    /// that the key needs its coding.
    pub fn applies(&self, path: &str) -> bool {
        self.enabled
            && match &self.paths {
                Some(globs) => globs.iter().any(|glob| glob.matches(path)),
                None => is_textual(path),
            }
    }

    /// Whether a response with this `Content-Type` is compressed.
    pub fn compresses(&self, content_type: &str) -> bool {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        self.content_types
            .iter()
            .any(|compressed| compressed.eq_ignore_ascii_case(media_type))
    }

    /// The codings that an origin may choose from for a request, with commas between them; `None` if there are none.
    pub fn accepted(&self, accept_encoding: Option<FieldValue<'_>>) -> Option<String> {
        let codings = accepted(accept_encoding, &self.codings);
        let tokens: Vec<_> = codings.into_iter().map(Coding::token).collect();
        (!tokens.is_empty()).then(|| tokens.join(","))
    }

    /// Chooses the coding for a request; `None` if no coding fits.
    pub fn negotiate(&self, accept_encoding: Option<FieldValue<'_>>) -> Option<Coding> {
        negotiate(accept_encoding, &self.codings)
    }
}

/// Whether the name of a path suggests text: no extension, or an extension of text. Formats that are compressed
/// themselves (images, video, archives) would gain nothing except entries in the cache.
pub fn is_textual(path: &str) -> bool {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    match name.rsplit_once('.') {
        None => true,
        Some((_, extension)) => TEXTUAL
            .iter()
            .any(|textual| textual.eq_ignore_ascii_case(extension)),
    }
}

/// Extensions of formats that compress well.
pub const TEXTUAL: [&str; 44] = [
    "asp",
    "aspx",
    "atom",
    "bmp",
    "cgi",
    "conf",
    "css",
    "csv",
    "cur",
    "eot",
    "geojson",
    "htm",
    "html",
    "ico",
    "ics",
    "ini",
    "js",
    "json",
    "jsonld",
    "jsp",
    "jsx",
    "less",
    "log",
    "map",
    "md",
    "mjs",
    "otf",
    "php",
    "rdf",
    "rss",
    "scss",
    "svg",
    "topojson",
    "ts",
    "tsv",
    "ttf",
    "txt",
    "vtt",
    "wasm",
    "webmanifest",
    "xhtml",
    "xml",
    "yaml",
    "yml",
];

/// Media types that compress well.
const CONTENT_TYPES: [&str; 26] = [
    "application/atom+xml",
    "application/geo+json",
    "application/javascript",
    "application/json",
    "application/ld+json",
    "application/manifest+json",
    "application/rss+xml",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-javascript",
    "application/xhtml+xml",
    "application/xml",
    "application/yaml",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/svg+xml",
    "image/vnd.microsoft.icon",
    "image/x-icon",
    "text/calendar",
    "text/css",
    "text/csv",
    "text/html",
    "text/javascript",
    "text/plain",
    "text/xml",
];

#[cfg(test)]
mod tests {
    use crate::policy::sections::compression::*;

    #[test]
    fn names_that_speak_for_text_are_textual() {
        for path in [
            "/",
            "/dir/",
            "/page",
            "/a.css",
            "/a.min.JS",
            "/a.b/c",
            "/x.json",
            "/a.svg",
        ] {
            assert!(is_textual(path), "{path}");
        }
        for path in [
            "/a.jpg",
            "/a.css.gz",
            "/x.woff2",
            "/dir/a.tar.zst",
            "/a.",
            "/v1.2",
        ] {
            assert!(!is_textual(path), "{path}");
        }
        assert!(TEXTUAL.is_sorted());
    }

    #[test]
    fn a_policys_globs_are_in_the_place_of_names() {
        let mut policy = CompressionPolicy {
            enabled: true,
            codings: vec![Coding::Gzip],
            min_bytes: 0,
            content_types: Vec::new(),
            paths: Some(vec![Glob::new("/api/*")]),
        };
        assert!(policy.applies("/api/x.bin"));
        assert!(!policy.applies("/x.html"));
        policy.content_types = vec!["text/css".to_owned()];
        assert!(policy.compresses("text/css; charset=utf-8") && policy.compresses("Text/CSS"));
        assert!(!policy.compresses("text/cs") && !policy.compresses(""));
        policy.enabled = false;
        assert!(!policy.applies("/api/x.bin"));
    }
}
