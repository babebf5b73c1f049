// SPDX-License-Identifier: Apache-2.0
//! A page of a bucket's listing: the answer to ListObjectsV2.

use anyhow::{Context as _, ensure};
use sluice_core::http::url::escaping::form_decoded;

use super::urls::without_entities;

/// A page of the objects of a bucket.
#[derive(Debug, PartialEq, Eq)]
pub struct ListingPage {
    /// The keys of the objects, with the bucket's prefix.
    pub keys: Vec<String>,
    /// The token of the next page; `None` if this page is the last one.
    pub token: Option<String>,
}

impl ListingPage {
    /// Reads the XML of an answer. A key that is not UTF-8 is left out, because no object can have it.
    ///
    /// # Errors
    /// The text is not a listing, or ends early.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let is_whole = text.contains("<ListBucketResult") && text.contains("</ListBucketResult>");
        ensure!(is_whole, "expected a listing in XML, a ListBucketResult");
        let is_encoded = element(text, "EncodingType").is_some_and(|encoding| encoding == "url");
        let key = |part: &str| {
            let (contents, _) = part.split_once("</Contents>")?;
            let key = without_entities(element(contents, "Key")?);
            match is_encoded {
                true => form_decoded(&key),
                false => Some(key),
            }
        };
        let is_last = element(text, "IsTruncated").is_none_or(|truncated| truncated != "true");
        let token = element(text, "NextContinuationToken");
        let token = token.filter(|token| !is_last && !token.is_empty());
        if !is_last {
            token.context("expected NextContinuationToken, since the listing goes on")?;
        }
        Ok(Self {
            keys: text.split("<Contents>").skip(1).filter_map(key).collect(),
            token: token.map(without_entities),
        })
    }
}

/// The text of the first element of this `name`, which has no attributes.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once('<')?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_keys_and_the_token_of_the_next_one() {
        let page = |parts: &str| {
            let text = format!(
                "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\">{parts}</ListBucketResult>"
            );
            let page = ListingPage::parse(&text).unwrap();
            (page.keys, page.token)
        };
        let keys = "<Contents><Key>a+b%2B%C3%BC.txt</Key><Size>1</Size></Contents>\
                    <Contents><ETag>&quot;1&quot;</ETag><Key>x&amp;%ff</Key></Contents>\
                    <Contents><Key>x&amp;y</Key></Contents>";
        assert_eq!(
            page(&format!(
                "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>\
                 <NextContinuationToken>1/a+b&amp;=</NextContinuationToken>{keys}"
            )),
            (
                vec!["a b+\u{fc}.txt".to_owned(), "x&y".to_owned()],
                Some("1/a+b&=".to_owned())
            )
        );
        assert_eq!(
            page(&format!("<IsTruncated>false</IsTruncated>{keys}")).0,
            ["a+b%2B%C3%BC.txt", "x&%ff", "x&y"]
        );
        assert_eq!(page(""), (Vec::new(), None));
    }

    #[test]
    fn a_listing_that_ends_early_is_refused() {
        for (text, expected) in [
            ("<Error/>", "expected a listing in XML"),
            ("<ListBucketResult><Contents>", "expected a listing in XML"),
            (
                "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
                "expected NextContinuationToken",
            ),
        ] {
            let error = ListingPage::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
