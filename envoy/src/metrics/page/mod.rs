// SPDX-License-Identifier: Apache-2.0
//! The page of the sites for a browser, for an edge without Grafana. The page has one file, which loads nothing but
//! the totals from the same listener.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page and its policy.
pub struct Page {
    /// The document, in HTML.
    pub document: String,
    /// The value of `Content-Security-Policy`. It allows the style and the script of the page by their hashes.
    pub policy: String,
}

/// The page of the sites.
pub static PAGE: LazyLock<Page> = LazyLock::new(|| Page {
    document: HTML
        .replace("{{ style }}", STYLE)
        .replace("{{ script }}", SCRIPT),
    policy: format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; connect-src 'self'; base-uri 'none'; form-action \
         'none'; frame-ancestors 'none'",
        source_of(SCRIPT),
        source_of(STYLE)
    ),
});

/// The hash of a text of the page, in the form of a source expression (CSP 3, section 2.3.1).
fn source_of(text: &str) -> String {
    let hash = digest(&SHA256, text.as_bytes());
    format!("sha256-{}", STANDARD.encode(hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_whole_and_names_no_other_server() {
        let Page { document, policy } = &*PAGE;
        assert!(document.contains(STYLE) && document.contains(SCRIPT));
        assert!(!document.contains("{{"), "{document}");
        for other in ["http:", "https:", "src=", "@import", "url("] {
            assert!(!document.contains(other), "{other}");
        }
        assert_eq!(policy.matches("sha256-").count(), 2);
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}
