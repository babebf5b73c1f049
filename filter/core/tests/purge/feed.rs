// SPDX-License-Identifier: Apache-2.0
//! The purge feed: its text, the purges that a reader applies, and writers that keep it within its bounds.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use proptest::prelude::*;
use sluice_core::key::secret::StoreSecret;
use sluice_core::policy::Policy;
use sluice_core::policy::purge::{Kind, Scope};
use sluice_core::purge::{
    Caller, Feed, FeedError, FeedId, FeedLine, FeedNews, FeedPosition, FeedPurge, FeedSubject,
    FeedTold, MAX_BYTES, MAX_LINES, Notification, PurgeOrder, PurgeSubject, SubjectError,
    applied_by,
};
use sluice_core::sites::Sites;
use sluice_fake::FakeSharedData;

const ID: FeedId = FeedId(0x9f2c_41d0);
const NOW: i64 = 1_795_591_862;
const DAY: i64 = 86_400;
const TEXT: &str = "sluice-purges/1 9f2c41d0
base 118 97
119 2026-11-25T07:31:02Z url https://www.example.com/a.css
120 2026-11-25T07:31:09Z soft prefix https://www.example.com/assets/
121 2026-11-25T07:33:40Z keys assets article-7 home
122 2026-11-25T07:40:00Z everything
123 2026-11-25T07:40:00Z soft everything assets
";

fn parse(text: &str) -> Feed {
    Feed::parse(text.as_bytes()).unwrap()
}

/// The subjects of a feed's lines, as they are written.
fn subjects_of(feed: &Feed) -> Vec<String> {
    let lines = feed.lines.iter();
    lines.map(|line| line.subject.to_string()).collect()
}

fn at(number: u64) -> Option<FeedPosition> {
    Some(FeedPosition { id: ID, number })
}

fn url(path: &str) -> FeedSubject {
    FeedSubject::url(format!("https://www.example.com{path}"))
}

fn append(
    feed: &mut Feed,
    purges: impl IntoIterator<Item = (bool, FeedSubject)>,
    now: i64,
) -> Result<u64, SubjectError> {
    let purges = purges.into_iter();
    let purges = purges.map(|(hard, subject)| FeedPurge { hard, subject });
    feed.append(purges.collect(), now)
}

fn feed_of(subjects: impl IntoIterator<Item = FeedSubject>) -> Feed {
    let mut feed = Feed::new(ID);
    let purges = subjects.into_iter().map(|subject| (true, subject));
    append(&mut feed, purges, NOW).unwrap();
    feed
}

fn numbers(news: FeedNews<'_>) -> Vec<u64> {
    news.lines.iter().map(|line| line.number).collect()
}

#[test]
fn a_feed_round_trips() {
    let feed = parse(TEXT);
    assert_eq!((feed.base, feed.hard_base, feed.newest()), (118, 97, 123));
    assert!(!feed.is_damaged);
    assert_eq!(feed.to_string(), TEXT);
    assert_eq!(parse(&Feed::new(ID).to_string()), Feed::new(ID));
}

#[test]
fn a_page_or_an_error_is_no_feed() {
    for text in [
        "",
        "<!doctype html><title>App</title>",
        "<Error><Code>NoSuchKey</Code></Error>",
        "sluice-purges/2 9f2c41d0\nbase 0 0\n",
        "sluice-purges/1 9f2c41d\nbase 0 0\n",
        "sluice-purges/1 9f2c41d0",
        "\u{feff}sluice-purges/1 9f2c41d0\nbase 0 0\n",
    ] {
        assert_eq!(Feed::parse(text.as_bytes()), Err(FeedError::Form), "{text}");
    }
}

#[test]
fn a_feed_beyond_its_bounds_is_none() {
    let line = |number: usize| format!("{number} 2026-11-25T07:31:02Z url /{number}\n");
    let lines = |count| (1..=count).map(line).collect::<String>();
    let head = "sluice-purges/1 9f2c41d0\nbase 0 0\n";
    assert!(!parse(&format!("{head}{}", lines(MAX_LINES))).is_damaged);
    for text in [
        format!("{head}{}", lines(MAX_LINES + 1)),
        format!("{head}{}", " ".repeat(MAX_BYTES)),
    ] {
        assert_eq!(Feed::parse(text.as_bytes()), Err(FeedError::Size));
    }
}

#[test]
fn a_reader_applies_the_lines_that_it_has_not_applied() {
    let feed = parse(TEXT);
    for (applied, new) in [
        (118, vec![119, 120, 121, 122, 123]),
        (121, vec![122, 123]),
        (123, vec![]),
    ] {
        let news = feed.news(at(applied));
        assert_eq!((news.everything, news.is_older), (None, false));
        assert_eq!(numbers(news), new);
        assert_eq!(news.position, at(123).unwrap());
    }
    // A reader that has applied nothing applies all lines of a feed from which none was dropped.
    let feed = feed_of([url("/a"), url("/b")]);
    assert_eq!(numbers(feed.news(None)), [1, 2]);
}

#[test]
fn a_reader_that_has_missed_lines_validates_everything() {
    let feed = parse(TEXT);
    let news = feed.news(at(97));
    assert_eq!(
        news.everything,
        Some(Kind::Soft),
        "only soft lines were dropped since"
    );
    assert_eq!(numbers(news), [119, 120, 121, 122, 123]);
    for applied in [
        at(96),
        None,
        Some(FeedPosition {
            id: FeedId(7),
            number: 500,
        }),
    ] {
        let news = feed.news(applied);
        assert_eq!(news.everything, Some(Kind::Hard), "{applied:?}");
        assert_eq!(news.position, at(123).unwrap());
    }
}

#[test]
fn a_feed_from_before_what_was_applied_changes_nothing() {
    let feed = parse(TEXT);
    let news = feed.news(at(124));
    assert!(news.is_older);
    assert_eq!(
        (news.everything, news.lines, news.position),
        (None, &[][..], at(124).unwrap())
    );
}

#[test]
fn lines_that_cannot_be_read_purge_everything() {
    for (from, to) in [
        ("118 97", "118 119"),
        ("base", "bottom"),
        ("119 2026", "119 206"),
        ("url https", "uri https"),
        ("120 2026", "119 2026"),
        ("122 ", "1222222222222222222222222 "),
        ("soft everything assets\n", "soft everything assets"),
        ("soft everything assets\n", "soft everything as sets\n"),
        ("keys assets article-7 home", "keys assets article-7  home"),
        ("123", "\n123"),
    ] {
        let text = TEXT.replacen(from, to, 1);
        let feed = parse(&text);
        assert!(feed.is_damaged, "{text}");
        assert_eq!(feed.news(at(118)).everything, Some(Kind::Hard), "{text}");
    }
    let mut bytes = TEXT.as_bytes().to_vec();
    bytes.extend(b"124 \xff\n");
    assert!(Feed::parse(&bytes).unwrap().is_damaged);
}

#[test]
fn old_lines_move_into_the_base() {
    let mut feed = Feed::new(ID);
    append(&mut feed, vec![(true, url("/a"))], NOW).unwrap();
    append(&mut feed, vec![(false, url("/b"))], NOW + 1).unwrap();
    append(&mut feed, vec![(true, url("/c"))], NOW + DAY).unwrap();
    assert_eq!(
        (feed.base, feed.lines.len()),
        (0, 3),
        "none is older than a day"
    );
    append(&mut feed, vec![(true, url("/d"))], NOW + DAY + 2).unwrap();
    assert_eq!((feed.base, feed.hard_base, feed.lines.len()), (2, 1, 2));
    append(&mut feed, vec![(true, url("/e"))], NOW + 9 * DAY).unwrap();
    assert_eq!((feed.base, feed.hard_base, feed.newest()), (4, 4, 5));
}

#[test]
fn neighbours_become_their_directory() {
    let files = |folder: &str, count: usize| {
        let folder = folder.to_owned();
        (0..count).map(move |number| url(&format!("/{folder}/{number}.png")))
    };
    let feed =
        feed_of(files("img", MAX_LINES - 2).chain([url("/a.css"), url("/b.css"), url("/img/x")]));
    assert_eq!(feed.lines.len(), MAX_LINES);
    let prefixes: Vec<_> = feed
        .lines
        .iter()
        .filter(|line| matches!(line.subject, FeedSubject::Prefix { .. }))
        .collect();
    let images = FeedSubject::prefix("https://www.example.com/img/");
    assert_eq!(prefixes.len(), 1);
    assert_eq!(prefixes[0].subject, images);
    assert_eq!(feed.newest(), MAX_LINES as u64 + 1, "no number is lost");
}

#[test]
fn five_thousand_objects_leave_the_rest_of_the_cache_in_place() {
    let mut feed = Feed::new(ID);
    let mut batches = 0;
    for batch in 0..50 {
        let file = |number: u32| (true, url(&format!("/photos/2026/{batch}/{number}.jpg")));
        append(&mut feed, (0..100).map(file), NOW).unwrap();
        batches += 1;
    }
    assert_eq!(batches, 50);
    assert!(feed.to_string().len() <= MAX_BYTES && feed.lines.len() <= MAX_LINES);
    for line in &feed.lines {
        let covered = line.subject.to_string();
        assert!(
            covered.contains("https://www.example.com/photos/2026/"),
            "{covered}"
        );
    }
}

#[test]
fn everything_is_purged_only_if_nothing_is_closer() {
    let host = |number: usize| FeedSubject::url(format!("https://{number}.test/a"));
    let feed = feed_of((0..=MAX_LINES).map(host));
    assert_eq!(feed.lines.len(), 1);
    assert_eq!(
        feed.lines[0].subject,
        FeedSubject::Everything { site: None }
    );
    let keys = |site: &str, number: usize| FeedSubject::Keys {
        site: Some(site.to_owned()),
        keys: vec![number.to_string()],
    };
    let feed = feed_of(
        (0..=MAX_LINES)
            .map(|number| keys("shop", number))
            .chain([url("/a")]),
    );
    assert_eq!(
        subjects_of(&feed),
        ["everything shop", "url https://www.example.com/a"]
    );
}

#[test]
fn a_subject_that_no_line_can_have_is_refused_or_rewritten() {
    let mut feed = Feed::new(ID);
    for (subject, expected) in [
        (FeedSubject::url(""), "url: expected"),
        (
            FeedSubject::prefix("a".repeat(700)),
            "prefix: expected 1 to 600 bytes",
        ),
        (
            FeedSubject::Everything {
                site: Some("a b".to_owned()),
            },
            "site: expected",
        ),
        (
            FeedSubject::Keys {
                site: None,
                keys: vec!["a b".to_owned()],
            },
            "surrogate_keys: expected",
        ),
    ] {
        let error = append(&mut feed, vec![(true, url("/a")), (true, subject)], NOW).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
        assert_eq!(feed, Feed::new(ID));
    }
    let long = format!("/{}/{}", "a".repeat(500), "b".repeat(500));
    let odd = FeedSubject::url("https://a.test/ü b\n");
    append(
        &mut feed,
        vec![(true, FeedSubject::prefix(long)), (true, odd)],
        NOW,
    )
    .unwrap();
    assert_eq!(
        subjects_of(&feed),
        [
            format!("prefix /{}/", "a".repeat(500)),
            "url https://a.test/%C3%BC%20b%0A".to_owned()
        ]
    );
    assert_eq!(parse(&feed.to_string()), feed);
}

#[test]
fn a_line_orders_what_a_call_with_its_subject_orders() {
    let secret = StoreSecret::new([1, 2]);
    let policy = Policy::parse(br#"{"origin": {"kind": "http"}}"#).unwrap();
    let sites = Sites::of_one(policy);
    let caller = Caller::of_edge(&sites, &secret);
    let lines = parse(TEXT).lines;
    let order = |line: &FeedLine| line.order(caller);
    let orders: Vec<_> = lines.iter().map(order).collect();
    let hard = orders[0].as_ref().unwrap();
    assert_eq!(hard.kind, Kind::Hard);
    let soft = orders[1].as_ref().unwrap();
    let prefix = Scope::Prefix("www.example.com/assets/".to_owned());
    assert_eq!(
        (soft.kind, &soft.what),
        (Kind::Soft, &PurgeSubject::Scopes(vec![prefix]))
    );
    // The site `assets` is that of another edge.
    assert!(orders[2].is_err() && orders[4].is_err());
    let all = orders[3].as_ref().unwrap();
    assert_eq!(all.what, PurgeSubject::Scopes(vec![Scope::Everything]));
}

/// An edge with the sites `shop`, in front of a bucket with a prefix, and `blog`.
fn two_sites() -> Sites {
    let sites = br#"{"edge": {}, "sites": [
        {"name": "shop", "hosts": ["shop.test"], "policy": {
            "origin": {"kind": "bucket", "bucket": "bkt", "prefix": "p", "authority": "s3.test"},
            "key": {"index_document": "index.html"}, "website": {"listing": {"prefixes": ["/*"]}}}},
        {"name": "blog", "hosts": ["blog.test"], "policy": {"origin": {"kind": "http"}}}
    ]}"#;
    Sites::parse(sites).unwrap()
}

/// The scopes of a line on the edge of a caller.
fn scopes_of(caller: Caller<'_>, purge: &FeedPurge) -> Vec<Scope> {
    let mut feed = Feed::new(ID);
    feed.append(vec![purge.clone()], NOW).unwrap();
    let feed = parse(&feed.to_string());
    match feed.lines[0].order(caller).unwrap().what {
        PurgeSubject::Scopes(scopes) => scopes,
        PurgeSubject::Tags { .. } => panic!("{purge}"),
    }
}

#[test]
fn the_line_of_a_call_purges_what_the_call_purges() {
    let secret = StoreSecret::new([1, 2]);
    let one = br#"{"origin": {"kind": "http", "authority": "o.test"}, "key": {"host": false}}"#;
    let one = Sites::of_one(Policy::parse(one).unwrap());
    let sites = two_sites();
    let edge = Caller::of_edge(&sites, &secret);
    let of_shop = Caller::of_site(&sites, 0, &secret);
    let of_one = Caller::of_edge(&one, &secret);
    for (caller, order, line) in [
        (
            edge,
            r#"{"url": "https://shop.test/ü"}"#,
            "url https://shop.test/%C3%BC",
        ),
        (
            edge,
            r#"{"url": "/a", "site": "shop", "soft": true}"#,
            "soft url shop /a",
        ),
        (edge, r#"{"url": "s3://bkt/p/a"}"#, "url s3://bkt/p/a"),
        (edge, r#"{"prefix": "s3://bkt/"}"#, "prefix s3://bkt/"),
        (of_shop, r#"{"url": "/a"}"#, "url shop /a"),
        (
            of_shop,
            r#"{"prefix": "https://shop.test/"}"#,
            "prefix shop https://shop.test/",
        ),
        (of_shop, r#"{"everything": true}"#, "everything shop"),
        (
            of_shop,
            r#"{"surrogate_keys": ["a", "b"]}"#,
            "keys shop a b",
        ),
        (edge, r#"{"everything": true}"#, "everything"),
        (of_one, r#"{"surrogate_keys": ["a"]}"#, "keys - a"),
        (of_one, r#"{"prefix": "/"}"#, "prefix /"),
    ] {
        let order = order.as_bytes();
        let purge = FeedPurge::of_order(caller, order).unwrap();
        assert_eq!(purge.to_string(), line);
        assert_eq!(FeedPurge::parse(line), Some(purge.clone()));
        let mut feed = Feed::new(ID);
        feed.append(vec![purge], NOW).unwrap();
        // The reader is an edge with all sites.
        let reader = if line.contains("shop") { edge } else { caller };
        let read = parse(&feed.to_string()).lines[0].order(reader).unwrap();
        assert_eq!(read, PurgeOrder::parse(caller, order).unwrap(), "{line}");
    }
}

#[test]
fn an_order_that_no_line_can_have_is_refused() {
    let secret = StoreSecret::new([1, 2]);
    let sites = two_sites();
    let caller = Caller::of_site(&sites, 0, &secret);
    for (order, expected) in [
        (
            r#"{"surrogate_keys": ["a\nb"]}"#.to_owned(),
            "surrogate_keys: expected",
        ),
        (
            format!(r#"{{"url": "/{}"}}"#, "a".repeat(5_000)),
            "url: expected 1 to 4096 bytes",
        ),
    ] {
        let error = FeedPurge::of_order(caller, order.as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

/// A notification that an object was written.
fn event(key: &str, sequencer: &str) -> String {
    format!(
        r#"{{"Records": [{{"eventName": "ObjectCreated:Put",
            "s3": {{"bucket": {{"name": "bkt"}}, "object": {{"key": "{key}"{sequencer}}}}}}}]}}"#
    )
}

fn purges_of(caller: Caller<'_>, event: &str) -> (Notification, Vec<FeedPurge>) {
    let notification = Notification::parse(&caller, event.as_bytes()).unwrap();
    let purges = FeedPurge::of_objects(caller, &notification.objects);
    (notification, purges)
}

#[test]
fn the_lines_of_an_event_purge_what_the_event_purges() {
    let secret = StoreSecret::new([1, 2]);
    let sites = two_sites();
    let caller = Caller::of_edge(&sites, &secret);
    let number = r#", "sequencer": "0055AED6DCD90281E5""#;
    for (key, sequencer, lines) in [
        (
            "p/d/a.css",
            number,
            &["url s3://bkt/p/d/a.css#0055AED6DCD90281E5"][..],
        ),
        (
            "p/d/a+b",
            "",
            &["url s3://bkt/p/d/a%20b", "url s3://bkt/p/d/a%2Bb"],
        ),
        (
            "p/a?#",
            r#", "sequencer": "no number""#,
            &["url s3://bkt/p/a%3F%23"],
        ),
        // Neither below the prefix nor for clients.
        ("q/a", number, &[]),
        ("p/.sluice/purges", number, &[]),
    ] {
        let (notification, purges) = purges_of(caller, &event(key, sequencer));
        let texts: Vec<_> = purges.iter().map(ToString::to_string).collect();
        assert_eq!(texts, lines, "{key}");
        let read = purges.iter().flat_map(|purge| scopes_of(caller, purge));
        let mut read: Vec<_> = read.collect();
        let urls = notification.urls.iter();
        let mut expected: Vec<_> = urls.map(|url| caller.scope_of(url)).collect();
        for scopes in [&mut read, &mut expected] {
            scopes.sort_unstable();
            scopes.dedup();
        }
        assert_eq!(read, expected, "{key}");
        assert_eq!(lines.is_empty(), expected.is_empty());
    }
}

#[test]
fn one_event_that_several_writers_hear_is_one_line_and_a_later_event_another() {
    let secret = StoreSecret::new([1, 2]);
    let sites = two_sites();
    let caller = Caller::of_edge(&sites, &secret);
    let purges = |number: &str| purges_of(caller, &event("p/a", number)).1;
    let (first, second) = (r#", "sequencer": "A1""#, r#", "sequencer": "A2""#);
    let mut feed = Feed::new(ID);
    for (number, expected) in [
        (first, 1),
        (first, 1),
        (second, 2),
        (first, 1),
        ("", 3),
        ("", 4),
    ] {
        assert_eq!(feed.append(purges(number), NOW), Ok(expected));
    }
    assert_eq!(feed.lines.len(), 4);
}

#[test]
fn the_directory_of_objects_is_purged_with_the_listings_that_show_it() {
    let secret = StoreSecret::new([1, 2]);
    let sites = two_sites();
    let caller = Caller::of_edge(&sites, &secret);
    let purge = FeedPurge::parse("prefix s3://bkt/p/d/e/").unwrap();
    let listing = |path: &str| caller.scope_of(&format!("shop!s3.test/bkt/p{path}index.html"));
    assert_eq!(
        scopes_of(caller, &purge),
        [
            listing("/"),
            listing("/d/"),
            listing("/d/e/"),
            Scope::Prefix("shop!s3.test/bkt/p/d/e/".to_owned())
        ]
    );
}

#[test]
fn a_site_that_fills_the_feed_purges_no_other_site() {
    let of_shop = |number: usize| FeedSubject::Url {
        site: Some("shop".to_owned()),
        url: format!("https://{number}.test/a"),
    };
    let feed = feed_of((0..=MAX_LINES).map(of_shop).chain([url("/a")]));
    assert_eq!(
        subjects_of(&feed),
        ["everything shop", "url https://www.example.com/a"]
    );
    let events = (0..=MAX_LINES).map(|number| FeedSubject::url(format!("s3://bkt/p/d/a#{number}")));
    let feed = feed_of(events.chain([url("/a")]));
    assert_eq!(feed.lines.len(), MAX_LINES);
    assert!(
        subjects_of(&feed)
            .iter()
            .all(|subject| subject.starts_with("url "))
    );
}

#[test]
fn the_time_by_which_every_edge_has_a_purge_includes_jitter_and_reading() {
    let by = applied_by(NOW, std::time::Duration::from_secs(2));
    assert_eq!(
        by, "2026-11-25T07:31:07Z",
        "2.2 s, 1 s, and the rest of the second"
    );
}

/// Whether a line covers the subject of another.
fn covers(wide: &FeedSubject, narrow: &FeedSubject) -> bool {
    match (wide, narrow) {
        (FeedSubject::Everything { site: None }, _) => true,
        (
            FeedSubject::Prefix { site, prefix: wide },
            FeedSubject::Url {
                site: of,
                url: narrow,
            }
            | FeedSubject::Prefix {
                site: of,
                prefix: narrow,
            },
        ) => site == of && narrow.starts_with(wide.as_str()),
        (FeedSubject::Everything { site }, FeedSubject::Keys { site: of, .. }) => site == of,
        _ => wide == narrow,
    }
}

/// Whether the news purge `written`.
fn purge(news: &FeedNews<'_>, written: &FeedLine) -> bool {
    let suffices = |hard: bool| hard || !written.hard;
    let all = news
        .everything
        .is_some_and(|kind| suffices(kind == Kind::Hard));
    let covers = |line: &FeedLine| suffices(line.hard) && covers(&line.subject, &written.subject);
    all || news.lines.iter().any(covers)
}

fn subject() -> impl Strategy<Value = FeedSubject> {
    let site = prop::option::of("[ab]");
    prop_oneof![
        20 => "/[a-c]{0,3}(/[a-z]{0,40}){0,3}".prop_map(|path| url(&path)),
        5 => "/([a-c]{0,2}/){0,2}".prop_map(|path| FeedSubject::prefix(format!("https://www.example.com{path}"))),
        3 => "[a-z]{1,3}".prop_map(|host| FeedSubject::url(format!("https://{host}.test/"))),
        1 => (site, prop::collection::vec("[a-z]{1,4}", 1..4)).prop_map(|(site, keys)| FeedSubject::Keys { site, keys }),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    /// A writer appends purges, and some time passes.
    Write(Vec<(bool, FeedSubject)>, i64),
    /// Two writers read the same text; the second write is refused, and that writer reads again.
    Race(Vec<(bool, FeedSubject)>, Vec<(bool, FeedSubject)>),
    /// A reader reads.
    Read(usize),
}

fn purges(most: usize) -> impl Strategy<Value = Vec<(bool, FeedSubject)>> {
    prop::collection::vec((any::<bool>(), subject()), 1..most)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (purges(700), prop_oneof![Just(1), Just(DAY / 2), Just(2 * DAY)])
            .prop_map(|(purges, passes)| Step::Write(purges, passes)),
        1 => (purges(4), purges(4)).prop_map(|(one, other)| Step::Race(one, other)),
        4 => (0..3_usize).prop_map(Step::Read),
    ]
}

/// The object in the bucket, and the purges that each reader has yet to apply.
struct World {
    stored: String,
    now: i64,
    readers: [(Option<FeedPosition>, Vec<FeedLine>); 3],
}

impl World {
    /// Appends to the feed that a writer has read. The bucket refuses a feed if another one has been stored since.
    fn write(&mut self, read: &str, purges: &[(bool, FeedSubject)]) -> bool {
        let mut feed = parse(read);
        let first = feed.newest() + 1;
        append(&mut feed, purges.to_vec(), self.now).unwrap();
        if read != self.stored {
            return false;
        }
        self.stored = feed.to_string();
        for ((hard, subject), number) in purges.iter().zip(first..) {
            let line = FeedLine {
                number,
                time: self.now,
                hard: *hard,
                subject: subject.clone(),
            };
            self.readers
                .iter_mut()
                .for_each(|(_, due)| due.push(line.clone()));
        }
        true
    }

    fn read(&mut self, reader: usize) {
        let feed = parse(&self.stored);
        let (applied, due) = &mut self.readers[reader];
        let news = feed.news(*applied);
        assert!(!news.is_older && !feed.is_damaged);
        for line in due.drain(..) {
            assert!(
                purge(&news, &line),
                "{line} is lost at {applied:?}: {news:?}"
            );
        }
        *applied = Some(news.position);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// No purge is lost in any order of writers and readers, and the feed keeps its bounds.
    #[test]
    fn no_purge_is_lost(steps in prop::collection::vec(step(), 1..12)) {
        let mut world = World {
            stored: Feed::new(ID).to_string(),
            now: NOW,
            readers: Default::default(),
        };
        for step in steps {
            let read = world.stored.clone();
            match step {
                Step::Write(purges, passes) => {
                    prop_assert!(world.write(&read, &purges));
                    world.now += passes;
                }
                Step::Race(one, other) => {
                    prop_assert!(world.write(&read, &one));
                    prop_assert!(!world.write(&read, &other));
                    let again = world.stored.clone();
                    prop_assert!(world.write(&again, &other));
                }
                Step::Read(reader) => world.read(reader),
            }
            prop_assert!(world.stored.len() <= MAX_BYTES);
            prop_assert!(parse(&world.stored).lines.len() <= MAX_LINES);
        }
        (0..3).for_each(|reader| world.read(reader));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Feed::parse(&bytes);
        let text = [TEXT.as_bytes(), &bytes].concat();
        let feed = Feed::parse(&text).unwrap();
        prop_assert_eq!(Feed::parse(feed.to_string().as_bytes()).unwrap().lines, feed.lines);
    }
}

#[test]
fn workers_know_the_last_line_that_any_of_them_has_heard_of() {
    let store = FakeSharedData::default();
    let told = FeedTold::new(&store);
    assert_eq!(told.read(), Ok(None));
    let other = FeedPosition {
        id: FeedId(1),
        number: 3,
    };
    for (heard, known) in [
        (at(5), at(5)),
        (at(4), at(5)),
        (at(9), at(9)),
        // Numbers of different feeds are not compared.
        (Some(other), Some(other)),
        (at(2), at(2)),
    ] {
        told.note(heard.unwrap()).unwrap();
        assert_eq!(told.read(), Ok(known));
    }
}
