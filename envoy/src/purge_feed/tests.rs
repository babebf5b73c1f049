// SPDX-License-Identifier: Apache-2.0
//! Writers of a feed by a way to an object in memory, which keeps to the conditions of its requests.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use sluice_core::purge::{Feed, FeedPurge, MAX_LINES};
use tempfile::TempDir;

use super::gathering::{Gathering, WriteError};
use super::serve;
use super::way::{FeedAnswer, FeedWay};
use super::writer::FeedWriter;
use crate::net::bucket_client::Precondition;
use crate::net::unix_client::{self, Call, Reply};

/// The object, and the requests for it.
#[derive(Default)]
struct Object {
    text: Option<String>,
    version: u32,
    puts: u32,
    /// The status of all answers, in place of the object.
    refuses: Option<u16>,
}

/// A way to the object, for any number of writers.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Object>>);

impl Memory {
    fn object(&self) -> MutexGuard<'_, Object> {
        self.0.lock().unwrap()
    }

    fn feed(&self) -> Feed {
        let object = self.object();
        Feed::parse(object.text.as_deref().unwrap_or_default().as_bytes()).unwrap()
    }
}

impl FeedWay for Memory {
    fn get(&self) -> anyhow::Result<FeedAnswer> {
        let object = self.object();
        let found = object.text.as_ref().map_or(404, |_| 200);
        Ok(FeedAnswer {
            status: object.refuses.unwrap_or(found),
            tag: Some(object.version.to_string()),
            body: object.text.clone().unwrap_or_default().into(),
        })
    }

    fn put(&self, condition: Precondition<'_>, text: &str) -> anyhow::Result<u16> {
        let mut object = self.object();
        object.puts += 1;
        if let Some(status) = object.refuses {
            return Ok(status);
        }
        let holds = match condition {
            Precondition::IsMissing => object.text.is_none(),
            Precondition::HasTag(tag) => object.text.is_some() && tag == object.version.to_string(),
        };
        if !holds {
            return Ok(412);
        }
        object.version += 1;
        object.text = Some(text.to_owned());
        Ok(200)
    }
}

fn purge(line: &str) -> FeedPurge {
    FeedPurge::parse(line).unwrap()
}

fn post(socket: &Path, body: &str) -> Reply {
    let call = Call {
        method: "POST",
        body,
        ..Call::get("/")
    };
    unix_client::call(socket, &call).unwrap()
}

#[test]
fn purges_of_one_moment_are_one_write_and_a_line_said_twice_is_one() {
    let (memory, state) = (Memory::default(), TempDir::new().unwrap());
    let socket = serve(memory.clone(), state.path()).unwrap();
    let path = socket.path().to_owned();
    let calls = ["url /a\n", "soft url /b\nurl /a\n", "everything shop\n"];
    let callers = calls.map(|body| {
        let path = path.clone();
        thread::spawn(move || post(&path, body))
    });
    let answers = callers.map(|caller| caller.join().unwrap());
    for answer in answers {
        assert_eq!((answer.status.as_u16(), answer.body.as_str()), (200, "3"));
    }
    assert_eq!(memory.object().puts, 1);
    let mut lines: Vec<_> = memory.feed().lines;
    lines.sort_by_key(|line| line.subject.to_string());
    let lines: Vec<_> = lines.iter().map(|line| line.subject.to_string()).collect();
    assert_eq!(lines, ["everything shop", "url /a", "url /b"]);
    // A later call with the same subject is another purge.
    assert_eq!(post(&path, "url /a\n").body, "4");
}

#[test]
fn a_purge_that_is_not_in_the_feed_is_answered_with_the_reason() {
    let (memory, state) = (Memory::default(), TempDir::new().unwrap());
    let socket = serve(memory.clone(), state.path()).unwrap();
    for (refuses, status, reason) in [
        (Some(403), 502, "status 403: the keys may not read the feed"),
        (Some(503), 503, "the feed cannot be read: status 503"),
        (None, 502, "the object is no feed"),
    ] {
        memory.object().refuses = refuses;
        memory.object().text = Some("<!doctype html>".to_owned());
        let answer = post(socket.path(), "url /a\n");
        assert_eq!(answer.status.as_u16(), status);
        assert!(answer.body.starts_with(reason), "{}", answer.body);
    }
    for body in [
        "",
        "1 2026-11-25T07:31:02Z url /a\n",
        "uri /a\n",
        "url /a\n\n",
    ] {
        assert_eq!(post(socket.path(), body).status.as_u16(), 400, "{body:?}");
    }
}

#[test]
fn one_event_that_three_writers_hear_is_one_line_with_one_number() {
    let memory = Memory::default();
    let event = [purge("url s3://b/a#0055AED6DCD90281E5")];
    let writers = [0; 3].map(|_| {
        let (memory, event) = (memory.clone(), event.clone());
        thread::spawn(move || FeedWriter(&memory).append(&event).unwrap().number)
    });
    assert_eq!(writers.map(|writer| writer.join().unwrap()), [1, 1, 1]);
    assert_eq!(memory.feed().lines.len(), 1);
    let puts = memory.object().puts;
    FeedWriter(&memory).append(&event).unwrap();
    assert_eq!(memory.object().puts, puts, "the feed has it already");
}

#[test]
fn the_upload_of_five_thousand_objects_leaves_the_rest_of_the_cache_in_place() {
    let memory = Memory::default();
    let write = {
        let memory = memory.clone();
        move |purges: Vec<FeedPurge>| {
            let written = FeedWriter(&memory)
                .append(&purges)
                .map_err(|_| WriteError {
                    may_pass: true,
                    reason: String::new(),
                })?;
            Ok(written.number)
        }
    };
    let gathering = Gathering::start(write).unwrap();
    // Messages of ten events each, more than a thousand events a second.
    let outcomes: Vec<_> = (0..500)
        .map(|message| {
            let events = (0..10).map(|number| {
                let album = message / 50;
                purge(&format!(
                    "url s3://b/photos/{album}/{message}-{number}.jpg#{message}{number}"
                ))
            });
            let outcome = gathering.add(events.collect()).unwrap();
            thread::sleep(Duration::from_millis(1));
            outcome
        })
        .collect();
    for outcome in outcomes {
        outcome.recv().unwrap().unwrap();
    }
    let feed = memory.feed();
    assert!(feed.lines.len() <= MAX_LINES && feed.newest() == 5_000 && feed.base == 0);
    for line in &feed.lines {
        let subject = line.subject.to_string();
        assert!(subject.contains(" s3://b/photos/"), "{subject}");
    }
    let puts = memory.object().puts;
    println!("5,000 objects: {puts} PUTs, {} lines", feed.lines.len());
    assert!((2..=25).contains(&puts), "{puts} PUTs");
}

#[test]
fn purges_beyond_the_bound_are_refused_and_one_large_call_is_not() {
    let gathering = Gathering::default();
    let many = |count| vec![purge("url /a"); count];
    assert!(gathering.add(many(5_000)).is_some());
    assert!(gathering.add(many(1)).is_none());
    let gathering = Gathering::default();
    assert!(gathering.add(many(4_000)).is_some());
    assert!(gathering.add(many(96)).is_some());
    assert!(gathering.add(many(1)).is_none());
}
