// SPDX-License-Identifier: Apache-2.0
//! The URLs to warm, from a list or a sitemap.

use anyhow::{Context as _, anyhow, ensure};
use sluice_core::http::url::escaping::escape_key;
use sluice_core::key::split_absolute;

/// Whether a text is an absolute URL of HTTP with a host.
pub fn is_url(text: &str) -> bool {
    let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    visible && split_absolute(text.as_bytes()).is_some_and(|(_, host, _)| !host.is_empty())
}

/// The URLs of a list, one on each line. A line is a URL, a path with its query, or an object's key; the last two are
/// below `base`. Empty lines and lines that begin with `#` count for nothing.
///
/// # Errors
/// The number of a line that is none of these, and the line.
pub fn of_list(text: &str, base: Option<&str>) -> anyhow::Result<Vec<String>> {
    let lines = text.lines().enumerate();
    let lines = lines.map(|(index, line)| (index + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let url = |(number, line): (usize, &str)| {
        if is_url(line) {
            return Ok(line.to_owned());
        }
        let below = base.map(|base| base.trim_end_matches('/'));
        let below = below.ok_or_else(|| {
            anyhow!("line {number}: {line:?}: expected a URL, or --base to be set")
        })?;
        Ok(match line.strip_prefix('/') {
            Some(path) => format!("{below}/{path}"),
            None => format!("{below}/{}", escape_key(line)),
        })
    };
    let urls: Vec<String> = lines.map(url).collect::<anyhow::Result<_>>()?;
    match urls.iter().find(|url| !is_url(url)) {
        Some(url) => Err(anyhow!("{url:?}: expected a URL of visible characters")),
        None => Ok(urls),
    }
}

/// The locations in a sitemap (sitemaps.org/protocol.html): URLs, or other sitemaps.
#[derive(Debug, PartialEq, Eq)]
pub enum Sitemap {
    /// URLs of pages.
    Pages(Vec<String>),
    /// URLs of sitemaps.
    Index(Vec<String>),
}

impl Sitemap {
    /// Reads a sitemap.
    ///
    /// # Errors
    /// The text is not a sitemap, or one of its locations is not a URL.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let is_index = text.contains("<sitemapindex");
        ensure!(
            is_index || text.contains("<urlset"),
            "expected a sitemap in XML, with urlset or sitemapindex"
        );
        let parts = text.split("<loc>").skip(1);
        let locations = parts.map(|part| {
            let (location, _) = part.split_once("</loc>").context("a loc without its end")?;
            let location = without_entities(location.trim());
            ensure!(is_url(&location), "{location:?}: expected a URL");
            Ok(location)
        });
        let locations = locations.collect::<anyhow::Result<Vec<_>>>()?;
        Ok(if is_index {
            Self::Index(locations)
        } else {
            Self::Pages(locations)
        })
    }
}

/// Replaces the entities that XML defines.
fn without_entities(text: &str) -> String {
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        // NB: the last one, because it makes the beginning of the others.
        ("&amp;", "&"),
    ];
    let text = text.to_owned();
    entities
        .into_iter()
        .fold(text, |text, (entity, character)| {
            text.replace(entity, character)
        })
}

/// The scheme and the host of a URL.
pub fn origin_of(url: &str) -> Option<(&str, &[u8])> {
    split_absolute(url.as_bytes()).map(|(scheme, authority, _)| (scheme, authority))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_urls_paths_and_keys() {
        let list = "# films\nhttps://a.test/x?y=1\n\n/a%20b?v=1\nfilms/a b+c?.mp4\r\n";
        let urls = of_list(list, Some("http://b.test/static/")).unwrap();
        assert_eq!(
            urls,
            [
                "https://a.test/x?y=1",
                "http://b.test/static/a%20b?v=1",
                "http://b.test/static/films/a%20b%2Bc%3F.mp4",
            ]
        );
        for (list, base, expected) in [
            (
                "\n/a",
                None,
                "line 2: \"/a\": expected a URL, or --base to be set",
            ),
            (
                "/a b",
                Some("http://a.test"),
                "\"http://a.test/a b\": expected a URL of visible",
            ),
        ] {
            let error = of_list(list, base).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_sitemap_has_pages_or_sitemaps() {
        let pages = "<?xml version=\"1.0\"?><urlset><url>\n<loc> https://a.test/?a=1&amp;b=%26lt; </loc></url></urlset>";
        let expected = ["https://a.test/?a=1&b=%26lt;".to_owned()];
        assert_eq!(
            Sitemap::parse(pages).unwrap(),
            Sitemap::Pages(expected.into())
        );
        let index =
            "<sitemapindex><sitemap><loc>https://a.test/1.xml</loc></sitemap></sitemapindex>";
        let expected = ["https://a.test/1.xml".to_owned()];
        assert_eq!(
            Sitemap::parse(index).unwrap(),
            Sitemap::Index(expected.into())
        );
        for (text, expected) in [
            ("<html>", "expected a sitemap in XML"),
            ("<urlset><loc>/a</loc></urlset>", "\"/a\": expected a URL"),
            ("<urlset><loc>https://a.test/", "a loc without its end"),
        ] {
            let error = Sitemap::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
