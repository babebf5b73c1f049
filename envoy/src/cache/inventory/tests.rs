// SPDX-License-Identifier: Apache-2.0
//! Tests of the inventory, on files as Envoy's store writes them.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::cache::entries::tests::file_of;

/// 6 November 1994, 08:49:37, in seconds since the epoch.
const STORED: u64 = 784_111_777;
const DATE: (&str, &str) = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");

/// The cache of an edge with the sites `assets` and `shop`.
struct Cache {
    dir: TempDir,
    files: u64,
}

impl Cache {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        Self { dir, files: 0 }
    }

    fn store(&mut self, host: &str, path: &str, headers: &[(&str, &str)]) {
        self.store_at(host, path, STORED, headers);
    }

    fn store_at(&mut self, host: &str, path: &str, time: u64, headers: &[(&str, &str)]) {
        self.files += 1;
        let file = self.dir.path().join(format!("cache-{}", self.files));
        fs::write(file, file_of(host, path, time, headers)).unwrap();
    }

    fn inventory(&self) -> Inventory {
        Inventory {
            folder: self.dir.path().to_owned(),
            bound: Usage {
                bytes: 4_000,
                files: 100,
            },
            shares: Shares::new([("assets", 3), ("shop", 1)]),
        }
    }
}

fn question(by: Grouping, depth: usize) -> UsageQuestion {
    UsageQuestion {
        by,
        depth,
        top: 10,
        site: None,
    }
}

/// The sites, names and numbers of the groups.
fn groups(contents: &CacheContents) -> Vec<(&str, &str, u64)> {
    let groups = contents.groups.iter();
    let groups = groups.map(|group| (group.site.as_str(), group.name.as_str(), group.objects));
    let mut groups: Vec<_> = groups.collect();
    groups.sort_unstable();
    groups
}

#[test]
fn all_variants_of_a_url_are_found_and_no_other_url() {
    let mut cache = Cache::new();
    let entry = |key: &str| format!("7 9 1 7 200 3600 5 60 0 12 1 {key}");
    let plain = entry("assets!a.test/app.css#g=3;ae=br");
    let headers = [
        (":status", "200"),
        DATE,
        ("cache-control", "max-age=3660"),
        ("content-type", "text/css; charset=utf-8"),
        ("etag", "sluice 3600 60 0 7 ae=br - \"9a\""),
        ("surrogate-key", "app home"),
        ("x-sluice-entry", &plain),
    ];
    // The first variant of a URL is stored under the plain key.
    cache.store("assets!a.test", "/app.css#0123;g=3", &headers);
    let gzip = entry("assets!a.test/app.css#ae=gzip;method=HEAD");
    let headers = [("x-sluice-entry", gzip.as_str())];
    cache.store(
        "assets!a.test",
        "/app.css#4567;ae=gzip;method=HEAD",
        &headers,
    );
    cache.store("assets!a.test", "/app.css?v=2#0123", &[]);
    cache.store("shop!a.test", "/app.css#0123", &[]);
    for slice in ["s=0.0123456789abcdef", "s=1.0123456789abcdef"] {
        cache.store("assets!a.test", &format!("/app.css#4567;{slice}"), &[]);
    }
    let found = cache
        .inventory()
        .stored_of("assets!a.test/app.css#89ab;g=3")
        .unwrap();
    assert!(!found.cut);
    assert_eq!((found.slices.count, found.slices.body_bytes), (2, 14));
    let variants = found.stored.iter().map(|stored| stored.variant.as_str());
    assert_eq!(variants.collect::<Vec<_>>(), ["ae=br", "ae=gzip"]);
    let [brotli, gzip] = found.stored.as_slice() else {
        panic!("{found:?}");
    };
    let expected = StoredResponse {
        site: "assets".to_owned(),
        host: "a.test".to_owned(),
        path: "/app.css".to_owned(),
        variant: "ae=br".to_owned(),
        for_head: false,
        status: Some(200),
        bytes: brotli.bytes,
        body_bytes: 7,
        stored_at_ms: Some(STORED * 1_000),
        used_at_ms: brotli.used_at_ms,
        fresh_until_ms: Some((STORED + 3_600) * 1_000),
        served_until_ms: Some((STORED + 3_661) * 1_000),
        purge: 12,
        etag: Some("\"9a\"".to_owned()),
        content_type: Some("text/css; charset=utf-8".to_owned()),
        surrogate_keys: vec!["app".to_owned(), "home".to_owned()],
    };
    assert_eq!(*brotli, expected);
    assert!(gzip.for_head && gzip.fresh_until_ms.is_none());
}

#[test]
fn a_site_has_its_share_and_a_removed_site_has_none() {
    let mut cache = Cache::new();
    cache.store_at("assets!a.test", "/a#0", STORED + 9, &[]);
    cache.store("assets!a.test", "/b#0", &[]);
    cache.store("gone!a.test", "/b#0", &[]);
    fs::write(cache.dir.path().join("cache-99"), "not a file of the store").unwrap();
    let contents = cache
        .inventory()
        .usage(&question(Grouping::Site, 0))
        .unwrap();
    assert_eq!(groups(&contents), [("assets", "", 2), ("gone", "", 1)]);
    let shares: Vec<_> = contents
        .groups
        .iter()
        .map(|group| group.share_bytes)
        .collect();
    assert_eq!(shares, [Some(3_000), None], "the largest is first");
    let oldest = contents.groups.first().and_then(|group| group.oldest_at_ms);
    assert_eq!(oldest, Some(STORED * 1_000));
    assert_eq!((contents.objects, contents.unreadable), (3, 1));
    assert_eq!((contents.limit_bytes, contents.cut), (4_000, false));
}

#[test]
fn prefixes_have_as_many_segments_as_asked_for() {
    let mut cache = Cache::new();
    for path in [
        "/",
        "/a.css#0",
        "/img/a/1.png#0",
        "/img/a/2.png?w=1#0",
        "/img/b/3.png#0",
    ] {
        cache.store("assets!a.test", path, &[]);
    }
    cache.store("b.test", "/img/1.png", &[]);
    let by = |depth| {
        cache
            .inventory()
            .usage(&question(Grouping::Prefix, depth))
            .unwrap()
    };
    let one = by(1);
    let expected = [
        ("", "b.test/img/", 1),
        ("assets", "a.test/", 2),
        ("assets", "a.test/img/", 3),
    ];
    assert_eq!(groups(&one), expected);
    let two = by(2);
    assert!(
        groups(&two).contains(&("assets", "a.test/img/a/", 2)),
        "{two:?}"
    );
}

#[test]
fn media_types_have_no_parameters_and_the_smallest_groups_are_left_out() {
    let mut cache = Cache::new();
    for value in ["text/css", "Text/CSS; charset=utf-8", "image/png"] {
        cache.store("assets!a.test", "/a", &[("content-type", value)]);
    }
    cache.store("shop!a.test", "/a", &[]);
    let only = |top, site: Option<&str>| {
        let question = UsageQuestion {
            top,
            site: site.map(str::to_owned),
            ..question(Grouping::Type, 0)
        };
        cache.inventory().usage(&question).unwrap()
    };
    let all = only(10, None);
    assert_eq!(
        groups(&all),
        [("", "", 1), ("", "image/png", 1), ("", "text/css", 2)]
    );
    let first = only(1, None);
    assert_eq!(groups(&first), [("", "text/css", 2)]);
    assert_eq!(
        (first.more_groups, first.objects, first.bytes),
        (2, 4, all.bytes)
    );
    assert_eq!(groups(&only(10, Some("shop"))), [("", "", 1)]);
}

#[test]
fn a_question_is_read_as_it_is_written_and_a_wrong_one_names_the_accepted_values() {
    let question = UsageQuestion {
        by: Grouping::Prefix,
        depth: 3,
        top: 7,
        site: Some("shop".to_owned()),
    };
    assert_eq!(question.query(), "by=prefix&depth=3&top=7&site=shop");
    assert_eq!(UsageQuestion::parse(&question.query()), Ok(question));
    assert_eq!(UsageQuestion::parse(""), Ok(UsageQuestion::default()));
    for (query, expected) in [
        ("by=host", "by=host: expected site, prefix or type"),
        ("top=0", "top=0: expected a number from 1 to 10000"),
        ("depth=x", "depth=x: expected a number from 1 to 64"),
        ("a=b", "a: expected by, depth, top or site"),
    ] {
        assert_eq!(UsageQuestion::parse(query).unwrap_err(), expected);
    }
}

/// Measures a scan, for the documentation: `cargo test --release -p sluice a_scan_of_100_000 -- --ignored --nocapture`.
#[test]
#[ignore = "writes 100,000 files"]
fn a_scan_of_100_000_files_takes_a_few_seconds() {
    let mut cache = Cache::new();
    for number in 0..100_000 {
        cache.store(
            "assets!a.test",
            &format!("/{}/{number}#0", number % 100),
            &[DATE],
        );
    }
    let start = std::time::Instant::now();
    let contents = cache
        .inventory()
        .usage(&question(Grouping::Prefix, 1))
        .unwrap();
    println!("{} files: {:?}", contents.objects, start.elapsed());
    assert_eq!((contents.objects, contents.cut), (100_000, false));
}
