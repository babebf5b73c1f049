// SPDX-License-Identifier: Apache-2.0
//! Fuzzes the text of a purge feed, which any writer of the bucket can change. A feed that was read can be
//! written again, a reader applies it once, and a writer keeps it within its bounds.
#![no_main]
// A fuzz target reports what it finds by a panic.
#![allow(clippy::expect_used)]

use libfuzzer_sys::fuzz_target;
use sluice_core::purge::{Feed, FeedPurge, FeedSubject, MAX_BYTES, MAX_LINES};

fuzz_target!(|input: &[u8]| {
    let Ok(mut feed) = Feed::parse(input) else {
        return;
    };
    let written = Feed::parse(feed.to_string().as_bytes()).expect("a feed");
    assert!(!written.is_damaged);
    assert_eq!(written.lines, feed.lines);
    let news = feed.news(None);
    assert_eq!(news.position.number, feed.newest());
    let again = written.news(Some(news.position));
    assert!(again.everything.is_none() && again.lines.is_empty() && !again.is_older);
    let newest = feed.newest();
    let purge = FeedPurge {
        hard: true,
        subject: FeedSubject::url("https://www.example.com/a"),
    };
    let Ok(number) = feed.append(vec![purge], 0) else {
        // Only a feed without a number for another line refuses this one.
        assert!(newest > u64::MAX >> 3);
        return;
    };
    assert_eq!(number, newest + 1);
    let text = feed.to_string();
    assert!(text.len() <= MAX_BYTES && feed.lines.len() <= MAX_LINES);
    let stored = Feed::parse(text.as_bytes()).expect("a feed");
    assert!(!stored.is_damaged && stored.newest() == number);
});
