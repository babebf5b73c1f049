// SPDX-License-Identifier: Apache-2.0
//! The URL of a request, as it is recorded and shown.

/// The most bytes of a URL that are recorded. The rest is cut off.
pub const MOST_URL_BYTES: usize = 1_024;

/// The text in place of a credential.
const HIDDEN: &str = "***";
/// The end of a URL that is cut off.
const CUT: char = '…';

/// Parts of the names of query parameters that contain credentials, in lower case.
const CREDENTIAL_PARTS: &[&str] = &[
    "accesskey",
    "access_key",
    "apikey",
    "api_key",
    "api-key",
    "authorization",
    "credential",
    "password",
    "secret",
    "session",
    "signature",
    "token",
];
/// Whole names of query parameters that contain credentials, in lower case.
const CREDENTIAL_NAMES: &[&str] = &["auth", "code", "jwt", "policy", "pwd", "sid", "sig"];

/// The path and the query of a request. The values of query parameters that may be credentials are not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedUrl {
    text: Box<str>,
    path_bytes: usize,
}

impl RecordedUrl {
    /// Creates the record of a request's path and query. Bytes that are not UTF-8 are percent-encoded.
    pub fn new(path_and_query: &[u8]) -> Self {
        let text = to_text(path_and_query);
        let mut url = match text.split_once('?') {
            Some((path, query)) => [path, "?", &hide_credentials(query)].concat(),
            None => text,
        };
        if url.len() > MOST_URL_BYTES {
            url.truncate(shortened(&url, MOST_URL_BYTES).len());
            url.push(CUT);
        }
        Self {
            path_bytes: url.find('?').unwrap_or(url.len()),
            text: url.into(),
        }
    }

    /// The path with the query if `query`, or else the path alone.
    pub fn shown(&self, query: bool) -> &str {
        match query {
            true => &self.text,
            false => self.text.get(..self.path_bytes).unwrap_or_default(),
        }
    }

    /// Whether the request has a query.
    pub fn has_query(&self) -> bool {
        self.path_bytes < self.text.len()
    }
}

/// The longest beginning of a text that has at most `most` bytes.
pub fn shortened(text: &str, most: usize) -> &str {
    let ends = (0..=most.min(text.len())).rev();
    let end = ends.into_iter().find_map(|end| text.get(..end));
    end.unwrap_or_default()
}

/// Text of bytes from a request. Bytes that are not UTF-8 are percent-encoded.
fn to_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// The query with [`HIDDEN`] in place of the values that may be credentials.
fn hide_credentials(query: &str) -> String {
    let shown = query.split('&').map(|parameter| {
        let name = parameter.split_once('=').map(|(name, _)| name);
        match name.filter(|name| names_credential(name)) {
            Some(name) => format!("{name}={HIDDEN}"),
            None => parameter.to_owned(),
        }
    });
    shown.collect::<Vec<_>>().join("&")
}

fn names_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.replace("%5f", "_").replace("%2d", "-");
    CREDENTIAL_NAMES.contains(&name.as_str())
        || CREDENTIAL_PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_is_shown_only_on_demand() {
        let url = RecordedUrl::new(b"/search?q=private&page=2");
        assert_eq!(url.shown(false), "/search");
        assert_eq!(url.shown(true), "/search?q=private&page=2");
        assert!(url.has_query());
        let bare = RecordedUrl::new(b"/a");
        assert_eq!((bare.shown(true), bare.has_query()), ("/a", false));
    }

    #[test]
    fn no_credential_in_a_query_is_kept() {
        for (query, shown) in [
            (
                "X-Amz-Credential=AKIA&X-Amz-Date=2026&X-Amz-Signature=abc",
                "X-Amz-Credential=***&X-Amz-Date=2026&X-Amz-Signature=***",
            ),
            (
                "X%2DAmz-Security%2DToken=abc",
                "X%2DAmz-Security%2DToken=***",
            ),
            ("access_token=abc&q=1", "access_token=***&q=1"),
            (
                "AWSAccessKeyId=abc&Signature=d%3D",
                "AWSAccessKeyId=***&Signature=***",
            ),
            ("sig=a=b&code=c&password=d", "sig=***&code=***&password=***"),
            ("q=token&design=1&flag", "q=token&design=1&flag"),
        ] {
            let url = RecordedUrl::new(format!("/a?{query}").as_bytes());
            assert_eq!(url.shown(true), format!("/a?{shown}"));
        }
    }

    #[test]
    fn any_bytes_make_a_url_of_bounded_text() {
        let url = RecordedUrl::new(b"/\xffa\xc3\xa4?\xfe");
        assert_eq!(url.shown(true), "/%FFaä?%FE");
        let long = RecordedUrl::new("/ä".repeat(1_000).as_bytes());
        assert!(long.shown(true).len() <= MOST_URL_BYTES + CUT.len_utf8());
        assert!(long.shown(false).ends_with(CUT));
        assert_eq!(RecordedUrl::new(b"").shown(true), "");
    }
}
