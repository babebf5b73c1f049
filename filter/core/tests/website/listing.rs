// SPDX-License-Identifier: Apache-2.0
//! Listings of directories: the pages that a client can select, the requests to the bucket, and the pages that are made
//! of the bucket's answers.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;
use sluice_core::policy::Policy;
use sluice_core::website::listing::{
    BucketList, ListError, ListedDirectory, ListedObject, MAX_PAGE_BYTES, Page, PageFormat,
    Selection, listed_urls, listing_target,
};
use sluice_core::website::{MissingObjectVisit, Substitute};

use crate::support::{bucket_policy, bucket_refusal, canonicalize_path, http_refusal};

const LISTED: &str = "key: {index_document: index.html}\nwebsite: {listing: {prefixes: [/pub/*]}}";

fn policy() -> Policy {
    bucket_policy(LISTED)
}

/// A listing with these fields of all paths.
fn of_everything(fields: &str) -> Policy {
    bucket_policy(&format!(
        "key: {{index_document: index.html}}\nwebsite: {{listing: {{prefixes: [/*]{fields}}}}}"
    ))
}

/// The page of a directory with this client's path, for these keys and common beginnings of keys.
fn page(policy: &Policy, path: &str, keys: &[&str], more: bool) -> Page {
    let index = format!("/site{path}index.html");
    let directory = ListedDirectory::of_index(policy, &index).unwrap();
    let (directories, objects): (Vec<&str>, Vec<&str>) =
        keys.iter().partition(|key| key.ends_with("/dir/"));
    let list = BucketList {
        objects: objects.iter().map(|key| object(key)).collect(),
        directories: directories.iter().map(|&key| key.to_owned()).collect(),
        is_truncated: more,
        next_token: None,
    };
    Page::of(&directory, &Selection::FIRST, &list)
}

fn object(key: &str) -> ListedObject {
    ListedObject {
        key: key.to_owned(),
        size: 12_345,
        modified: "2026-01-31T23:59:59.000Z".to_owned(),
    }
}

/// The path and query of the request to the bucket that a client's path leads to.
fn question(policy: &Policy, path: &str) -> Option<String> {
    let target = canonicalize_path(policy, path.as_bytes()).unwrap();
    let visit = MissingObjectVisit::of(policy, &target, path.as_bytes(), || None)?;
    let (substitute, page) = visit.next_document(policy, &target, 404, None)?;
    assert_eq!(substitute, Substitute::Listing);
    let directory = ListedDirectory::of_index(policy, page.path())?;
    let selection = Selection::of_key(page.cache_key())?;
    Some(directory.question(&selection))
}

#[test]
fn a_path_below_a_listed_prefix_is_one_question_in_one_spelling() {
    let policy = policy();
    let first = "/site/?delimiter=%2F&list-type=2&max-keys=1000&prefix=pub%2F";
    for path in [
        "/pub/",
        "//pub//",
        "/%70ub/?x=1",
        "/pub/?list-type=2&prefix=",
        "/pub/?format=html",
    ] {
        assert_eq!(question(&policy, path).as_deref(), Some(first), "{path}");
    }
    let rows = [
        ("/pub/a%20b/%C3%BC/", "pub%2Fa%20b%2F%C3%BC%2F"),
        ("/pub/?after=x%26y", "pub%2F&start-after=pub%2Fx%26y"),
        ("/pub/?format=json&after=x", "pub%2F&start-after=pub%2Fx"),
        (
            "/pub/?after=d/",
            "pub%2F&start-after=pub%2Fd%2F%F4%8F%BF%BF",
        ),
    ];
    for (path, rest) in rows {
        let expected = first.replace("pub%2F", rest);
        assert_eq!(
            question(&policy, path).as_deref(),
            Some(&*expected),
            "{path}"
        );
    }
    for path in [
        "/",
        "/other/",
        "/pub/index.html",
        "/pub/x",
        "/pub/.git/",
        "/pub/.git/objects/",
        "/pub/?format=xml",
        "/pub/?after=",
        "/pub/?after=%00",
        "/pub/?after=%FF",
        "/pub/?after=a/b",
    ] {
        assert_eq!(question(&policy, path), None, "{path}");
    }
    let everything = of_everything(", page: 3");
    assert_eq!(
        question(&everything, "/").as_deref(),
        Some("/site/?delimiter=%2F&list-type=2&max-keys=3&prefix=")
    );
}

#[test]
fn each_page_has_its_own_key_under_the_url_of_the_index_document() {
    let policy = policy();
    let index = canonicalize_path(&policy, b"/pub/").unwrap();
    let mut keys = std::collections::BTreeSet::new();
    for path in [
        "/pub/",
        "/pub/?after=a",
        "/pub/?after=a/",
        "/pub/?format=json",
        "/pub/?format=json&after=%3B%23",
    ] {
        let selection = Selection::of_path(path.as_bytes()).unwrap();
        let page = listing_target(&policy, &index, &selection).unwrap();
        assert_eq!(page.url(), index.url());
        assert_ne!(page.cache_key(), index.cache_key());
        assert_eq!(Selection::of_key(page.cache_key()), Some(selection));
        keys.insert(page.cache_key().to_owned());
    }
    assert_eq!(keys.len(), 5);
    assert_eq!(Selection::of_key(index.cache_key()), None);
}

#[test]
fn a_directory_without_its_slash_is_redirected_if_it_is_listed() {
    let policy = bucket_policy(&LISTED.replace("{listing", "{redirect_directories: true, listing"));
    let mut found = Vec::new();
    for path in ["/pub/a", "/other"] {
        let target = canonicalize_path(&policy, path.as_bytes()).unwrap();
        let visit = MissingObjectVisit::of(&policy, &target, path.as_bytes(), || None).unwrap();
        let mut tried = None;
        while let Some((next, document)) = visit.next_document(&policy, &target, 404, tried) {
            found.push((next, document.cache_key().to_owned()));
            tried = Some(next);
        }
    }
    let expected = [
        (Substitute::Directory, "s3.test:9000/site/pub/a/index.html"),
        (
            Substitute::ListedDirectory,
            "s3.test:9000/site/pub/a/index.html#l=html/",
        ),
        (Substitute::Directory, "s3.test:9000/site/other/index.html"),
    ];
    let expected = expected.map(|(substitute, key)| (substitute, key.to_owned()));
    assert_eq!(found, expected);
    assert_eq!(
        policy
            .website
            .substitute_status(Substitute::ListedDirectory, 404),
        302
    );
}

#[test]
fn a_bucket_with_a_prefix_or_a_host_of_its_own_is_asked_for_its_own_objects() {
    let of = |origin: &str| {
        let document = format!(
            r#"{{"origin": {{"kind": "bucket", "bucket": "site", {origin}}},
            "key": {{"index_document": "index.html"}}, "website": {{"listing": {{"prefixes": ["/*"]}}}}}}"#
        );
        let policy = Policy::parse(document.as_bytes()).unwrap();
        question(&policy, "/d/").unwrap()
    };
    let query = "?delimiter=%2F&list-type=2&max-keys=1000&prefix=";
    assert_eq!(
        of(r#""authority": "s3.test", "prefix": "a b/c""#),
        format!("/site/{query}a%20b%2Fc%2Fd%2F")
    );
    assert_eq!(
        of(r#""authority": "site.s3.test", "addressing": "virtual_host", "prefix": "p""#),
        format!("/{query}p%2Fd%2F")
    );
}

#[test]
fn every_name_is_escaped_in_text_and_in_references() {
    let keys = [
        "pub/a&b<c>\"'.txt",
        "pub/ü .txt",
        "pub/javascript:x",
        "pub/?q#f",
        "pub/<dir/",
    ];
    let keys = [&keys[..], &["pub/é<&/dir/"]].concat();
    let html = page(&policy(), "/pub/", &keys[..4], false).body;
    for row in [
        "<a href=\"a%26b%3Cc%3E%22%27.txt\">a&amp;b&lt;c&gt;&quot;&#39;.txt</a><td>12345<td>2026-01-31 23:59:59",
        "<a href=\"%C3%BC%20.txt\">ü .txt</a>",
        "<a href=\"javascript%3Ax\">javascript:x</a>",
        "<a href=\"%3Fq%23f\">?q#f</a>",
    ] {
        assert!(html.contains(row), "{html}");
    }
    assert!(
        !html.contains("<script") && !html.contains("<style"),
        "{html}"
    );
    let directory = page(&of_everything(""), "/x%3C%26/", &["x<&/dir/"], false).body;
    assert!(
        directory.contains("<title>Index of /x&lt;&amp;/</title>"),
        "{directory}"
    );
    assert!(
        directory.contains("<a href=\"dir/\">dir/</a>"),
        "{directory}"
    );
    assert!(directory.contains("<a href=\"../\">"), "{directory}");
    let top = page(&of_everything(""), "/", &["a"], false).body;
    assert!(!top.contains("../"), "{top}");
}

#[test]
fn names_that_no_url_names_are_left_out_and_counted_and_hidden_names_are_not_shown() {
    let keys = [
        "pub/..",
        "pub/.",
        "pub//dir/",
        "pub/a\nb",
        "pub/a\u{FFFD}b",
        "pub/\\..\\x",
        "pub/.Sluice",
        "pub/.hidden",
        "pub/x.bak",
        "pub/shown",
    ];
    let policy = bucket_policy(&LISTED.replace("]}", "], hide: ['.hidden', '*.bak']}"));
    let keys: Vec<_> = keys
        .iter()
        .copied()
        .filter(|key| *key != "pub//dir/")
        .collect();
    let shown = page(&policy, "/pub/", &keys, false);
    assert_eq!(shown.body.matches("<a href=").count(), 1, "{}", shown.body);
    assert!(shown.body.contains("href=\"shown\""), "{}", shown.body);
    assert_eq!(shown.left_out, 6, "{}", shown.body);
    let default = page(&self::policy(), "/pub/", &["pub/.x", "pub/y"], false);
    assert_eq!((default.left_out, default.body.contains(".x<")), (0, false));
}

#[test]
fn a_directory_without_a_shown_entry_does_not_exist_unless_it_was_created_empty() {
    for keys in [&[][..], &["pub/.hidden"]] {
        assert_eq!(page(&policy(), "/pub/", keys, false).body, "", "{keys:?}");
    }
    let created = page(&policy(), "/pub/", &["pub/"], false);
    assert!(created.body.contains("Index of /pub/"), "{}", created.body);
    assert_eq!(created.body.matches("<a href=").count(), 0);
}

#[test]
fn a_page_leads_to_the_next_one_by_the_last_name_whether_or_not_that_is_shown() {
    for (keys, expected) in [
        (&["pub/a", "pub/b&"][..], "href=\"?after=b%26\""),
        (&["pub/a", "pub/z/dir/"], "href=\"?after=z/dir/\""),
        (&["pub/.x", "pub/.y"], "href=\"?after=.y\""),
    ] {
        let page = page(&policy(), "/pub/", keys, true).body;
        assert!(page.contains(expected), "{page}");
    }
    assert!(
        !page(&policy(), "/pub/", &["pub/a"], false)
            .body
            .contains("after=")
    );
}

#[test]
fn a_page_of_long_names_is_cut_and_continued() {
    let keys: Vec<String> = (0..1_000)
        .map(|n| format!("pub/{n:03}{}", "\"".repeat(500)))
        .collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let page = page(&policy(), "/pub/", &keys, false).body;
    let shown = page.matches("<tr><td><a").count();
    assert!(
        page.len() < 1 << 20 && page.len() > MAX_PAGE_BYTES - 10_000,
        "{}",
        page.len()
    );
    let last = format!("?after={:03}%22", shown - 1);
    assert!(shown < 1_000 && page.contains(&last), "{shown}");
}

#[test]
fn json_has_the_same_entries_with_their_types() {
    let policy = policy();
    let directory = ListedDirectory::of_index(&policy, "/site/pub/index.html").unwrap();
    let list = BucketList {
        objects: vec![object("pub/a\"<.txt")],
        directories: vec!["pub/d/".to_owned()],
        is_truncated: true,
        next_token: None,
    };
    let selection = Selection::of_path(b"/pub/?format=json").unwrap();
    assert_eq!(selection.format, PageFormat::Json);
    let body = Page::of(&directory, &selection, &list).body;
    let read: serde_json::Value = serde_json::from_str(&body).unwrap();
    let expected = serde_json::json!({
        "entries": [
            {"name": "d", "type": "directory"},
            {"name": "a\"<.txt", "type": "file", "size": 12_345, "mtime": "2026-01-31T23:59:59.000Z"},
        ],
        "next": "?format=json&after=d/",
    });
    assert_eq!(read, expected);
}

/// The answer of S3, with text in the places of `%`.
fn answer(contents: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>site</Name>\
         <Prefix>pub/</Prefix><KeyCount>1</KeyCount><MaxKeys>1000</MaxKeys><Delimiter>/</Delimiter>\
         <IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
    )
}

const OBJECT: &str = "<Contents><Key>pub/a</Key><LastModified>2026-01-31T23:59:59.000Z</LastModified>\
                      <ETag>&quot;0&quot;</ETag><Size>12345</Size><StorageClass>STANDARD</StorageClass></Contents>";

#[test]
fn the_answer_of_a_bucket_is_read_with_its_references() {
    let odd = OBJECT.replace("pub/a", "pub/&amp;&lt;&gt;&quot;&apos;&#252;&#xFC;&#13;");
    let list = answer(
        &[
            OBJECT,
            &odd,
            "<CommonPrefixes><Prefix>pub/d/</Prefix></CommonPrefixes>",
        ]
        .concat(),
    );
    let list = BucketList::parse(list.as_bytes(), "pub/").unwrap();
    let keys: Vec<_> = list
        .objects
        .iter()
        .map(|object| object.key.as_str())
        .collect();
    assert_eq!(keys, ["pub/a", "pub/&<>\"'üü\r"]);
    assert_eq!(list.objects[0], object("pub/a"));
    assert_eq!(
        (list.directories, list.is_truncated),
        (vec!["pub/d/".to_owned()], false)
    );
    let empty = "<ListBucketResult><Prefix/><IsTruncated>true</IsTruncated></ListBucketResult>";
    let empty = BucketList::parse(empty.as_bytes(), "").unwrap();
    assert!(empty.is_truncated && empty.objects.is_empty());
}

#[test]
fn names_are_decoded_where_the_bucket_has_encoded_them() {
    let names = [
        ("pub%2Fa%2Bb%C3%BC%01+c", "pub/a+b\u{fc}\u{1} c"),
        ("pub/a&amp;b", "pub/a&b"),
    ];
    for (written, name) in names {
        let plain = answer(&OBJECT.replace("pub/a", written));
        let last = "</ListBucketResult>";
        let encoded = plain.replace(last, &format!("<EncodingType>url</EncodingType>{last}"));
        let encoded = encoded.replace("<Prefix>pub/", "<Prefix>pub%2F");
        let list = BucketList::parse(encoded.as_bytes(), "pub/").unwrap();
        assert_eq!(list.objects[0].key, name);
    }
    let plain = answer(&OBJECT.replace("pub/a", "pub/a%2Bb+c"));
    let list = BucketList::parse(plain.as_bytes(), "pub/").unwrap();
    assert_eq!(list.objects[0].key, "pub/a%2Bb+c");
    let no_text = "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>\
                   <CommonPrefixes><Prefix>%ff/</Prefix></CommonPrefixes></ListBucketResult>";
    let read = BucketList::parse(no_text.as_bytes(), "");
    assert_eq!(read, Err(ListError::Foreign));
}

#[test]
fn the_token_of_the_next_page_is_read_where_a_page_follows() {
    for (truncated, token) in [("true", Some("1/a+b&=".to_owned())), ("false", None)] {
        let page = format!(
            "<ListBucketResult><IsTruncated>{truncated}</IsTruncated>\
             <NextContinuationToken>1/a+b&amp;=</NextContinuationToken></ListBucketResult>"
        );
        let list = BucketList::parse(page.as_bytes(), "").unwrap();
        assert_eq!(list.next_token, token);
    }
}

#[test]
fn an_answer_that_is_not_a_whole_list_of_the_directory_is_refused() {
    let whole = answer(OBJECT);
    for cut in 0..whole.len() {
        let read = BucketList::parse(&whole.as_bytes()[..cut], "pub/");
        assert_eq!(read, Err(ListError::Malformed), "{}", &whole[..cut]);
    }
    let rows = [
        (whole.replace("pub/a", "&b;"), ListError::Malformed),
        (whole.replace("pub/a", "&#xD800;"), ListError::Malformed),
        (whole.replace("pub/a", "&#+65;"), ListError::Malformed),
        (
            whole.replace("<Key>", "<Key><!-- -->"),
            ListError::Malformed,
        ),
        (
            whole.replace("<Key>pub/a", "<Key><![CDATA[pub/a]]>"),
            ListError::Malformed,
        ),
        (
            whole.replace("?>", "?><!DOCTYPE a [<!ENTITY b \"c\">]>"),
            ListError::Malformed,
        ),
        (whole.replace("</Key>", "</Kez>"), ListError::Malformed),
        (format!("{whole}<a/>"), ListError::Malformed),
        (format!("{whole}text"), ListError::Malformed),
        ("<a>".repeat(100_000), ListError::Foreign),
        (
            "<html><body>Welcome</body></html>".to_owned(),
            ListError::Foreign,
        ),
        (
            "<Error><Code>SlowDown</Code></Error>".to_owned(),
            ListError::Foreign,
        ),
        (
            whole.replace("<IsTruncated>false</IsTruncated>", ""),
            ListError::Foreign,
        ),
        (whole.replace("false", "no"), ListError::Foreign),
        (whole.replace("<Size>12345</Size>", ""), ListError::Foreign),
        (whole.replace("12345", "-1"), ListError::Foreign),
        (whole.replace("2026-01-31T", "<b/>"), ListError::Foreign),
        (whole.replace("pub/a", "other/a"), ListError::OtherPrefix),
        (
            whole.replace("<Prefix>pub/", "<Prefix>"),
            ListError::OtherPrefix,
        ),
    ];
    for (document, expected) in rows {
        let read = BucketList::parse(document.as_bytes(), "pub/");
        assert_eq!(read, Err(expected), "{document:.300}");
    }
    assert_eq!(
        BucketList::parse(b"<a>\xff</a>", ""),
        Err(ListError::Malformed)
    );
}

proptest! {
    #[test]
    fn no_answer_breaks_the_reader(text in "(<[/a-c!?]?|[>/&;#x1ü]|ListBucketResult){0,40}") {
        let _ = BucketList::parse(text.as_bytes(), "");
    }
}

#[test]
fn a_change_of_an_object_concerns_each_listed_directory_above_it() {
    let policy = policy();
    let urls = listed_urls(&policy, "/site/pub/a/b/c.txt");
    let expected = [
        "/site/pub/index.html",
        "/site/pub/a/index.html",
        "/site/pub/a/b/index.html",
    ];
    assert_eq!(urls, expected);
    assert_eq!(
        listed_urls(&policy, "/site/pub/.git/x"),
        ["/site/pub/index.html"]
    );
    assert_eq!(listed_urls(&policy, "/site/other/x"), [""; 0]);
    assert_eq!(listed_urls(&bucket_policy(""), "/site/pub/x"), [""; 0]);
}

#[test]
fn fields_of_a_listing_that_have_no_effect_are_refused() {
    let rows = [
        (
            "prefixes: []",
            "website.listing.prefixes: an empty list: expected a path such as /pub/*",
        ),
        (
            "prefixes: [/pub]",
            "website.listing.prefixes[0]: \"/pub\": expected a path that begins",
        ),
        (
            "prefixes: ['*']",
            "website.listing.prefixes[0]: \"*\": expected",
        ),
        (
            "prefixes: ['/a*']",
            "website.listing.prefixes[0]: \"/a*\": expected",
        ),
        (
            "prefixes: ['/*/a/*']",
            "website.listing.prefixes[0]: \"/*/a/*\": expected",
        ),
        (
            "prefixes: ['/a/../*']",
            "website.listing.prefixes[0]: \"/a/../*\": expected",
        ),
        (
            "prefixes: ['//*']",
            "website.listing.prefixes[0]: \"//*\": expected",
        ),
        ("page: 5", "website.listing.prefixes: required"),
        (
            "prefixes: [/*], page: 1",
            "website.listing.page: 1: expected a whole number from 2 to 1000",
        ),
        (
            "prefixes: [/*], hide: [a/b]",
            "website.listing.hide[0]: \"a/b\": expected a name without a slash",
        ),
        ("prefixes: [/*], ttl: 0s", "website.listing.ttl"),
    ];
    for (fields, expected) in rows {
        let sections = format!("key: {{index_document: i}}\nwebsite: {{listing: {{{fields}}}}}");
        let error = bucket_refusal(&sections).to_string();
        assert!(error.contains(expected), "{fields}: {error}");
    }
    let section = "website: {listing: {prefixes: [/*]}}";
    let error = bucket_refusal(section).to_string();
    assert!(
        error.contains("website.listing: an object: expected none, or key.index_document"),
        "{error}"
    );
    let error = http_refusal(section).to_string();
    assert!(
        error.contains("website.listing: an object: expected none for an HTTP origin"),
        "{error}"
    );
}
