// SPDX-License-Identifier: Apache-2.0
//! Tests that the judge accepts right responses, and no others.

use super::super::clock::Moment;
use super::super::fetches::{Ending, Fetch, Server};
use super::super::generations::GENERATION;
use super::super::origin::Shelf;
use super::super::pass::Pass;
use super::super::purges::Scope;
use super::*;
use crate::http::http_date;
use crate::http::message::Headers;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// An object of 30 kB, with a known length, and a new version each 400 ms; the origin does not fail for it.
const OBJECT: usize = 12;

fn world() -> World {
    World::new(Arc::new(Shelf::new(1, true)))
}

fn ask() -> Ask {
    Ask {
        object: OBJECT,
        variant: "a",
        head: false,
        part: None,
        validator: None,
        padding: None,
        pass: Pass::Open,
        adornment: None,
    }
}

fn fetch(object: usize, version: u64, begun: Moment) -> Fetch {
    Fetch {
        object,
        variant: String::new(),
        slice: None,
        version,
        date: UNIX_EPOCH + begun,
        edge: 0,
        server: Server::First,
        body: true,
        alone: true,
        conditional: false,
        unchanged: false,
        begun,
        ended: (Ending::Open, begun),
        fault: None,
    }
}

/// Has the origin send a version of an object when it has become current. Returns the origin's date.
fn send(world: &World, object: usize, version: u64) -> (&'static str, String) {
    let begun = world.shelf.objects[object].since(version);
    let fetch = fetch(object, version, begun);
    let date = ("date", http_date(fetch.date));
    world.shelf.fetches.begin(fetch);
    date
}

/// A whole, right response with a version, requested when it was current.
fn right(world: &World, version: u64) -> Answer {
    let object = &world.shelf.objects[OBJECT];
    let size = object.size(version);
    let fields = [
        send(world, OBJECT, version),
        (VERSION, version.to_string()),
        ("etag", format!("\"{version}\"")),
        ("content-length", size.to_string()),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    Answer {
        edge: 0,
        status: Some(200),
        headers: Headers(fields.to_vec()),
        body: object.content("a", version).slice(0..size),
        end: End::Whole,
        after: None,
        asked: object.since(version),
        progressed: object.since(version),
        silence: Duration::ZERO,
        ended: object.since(version) + Duration::from_millis(1),
    }
}

fn judged(world: &World, ask: &Ask, answer: &Answer) -> Result<&'static str, Wrong> {
    let case = Case { world, ask, answer };
    case.judge().map_err(|(wrong, _)| wrong)
}

#[test]
fn a_right_answer_passes_and_a_wrong_one_does_not() {
    let world = world();
    let whole = right(&world, 20);
    assert_eq!(judged(&world, &ask(), &whole), Ok("whole objects"));
    let mut changed = whole.clone();
    changed.body[500] ^= 1;
    assert_eq!(judged(&world, &ask(), &changed), Err(Wrong::Answer));
    let mut mixed = right(&world, 20);
    mixed.headers = right(&world, 21).headers;
    assert_eq!(judged(&world, &ask(), &mixed), Err(Wrong::Answer));
    let mut short = whole.clone();
    short.body.truncate(100);
    assert_eq!(judged(&world, &ask(), &short), Err(Wrong::Answer));
    short.end = End::Cut("closed".to_owned());
    assert_eq!(judged(&world, &ask(), &short), Err(Wrong::Cut));
    world.outages.of(0).begin(short.asked);
    assert_eq!(
        judged(&world, &ask(), &short),
        Ok("cut, as the edge was killed")
    );
}

#[test]
fn a_connection_may_end_behind_an_early_response_whose_fill_was_purged() {
    for (status, purged, excused) in [(304, true, true), (304, false, false), (200, true, false)] {
        let world = world();
        let previous = right(&world, 20);
        if purged {
            let begun = previous.ended.saturating_sub(Duration::from_millis(60));
            world.purges.begin(Scope::Everything, false, begun, 1);
        }
        let unanswered = Answer {
            status: None,
            body: Vec::new(),
            end: End::Cut("broken".to_owned()),
            after: Some((ask().object, status, previous.ended)),
            ..right(&world, 20)
        };
        let judged = judged(&world, &ask(), &unanswered);
        assert_eq!(judged.is_ok(), excused, "{status} {purged}: {judged:?}");
    }
}

#[test]
fn a_304_is_for_a_copy_that_is_not_older_than_the_stored_version() {
    let world = world();
    let number = world.shelf.objects.iter().position(|object| object.dated);
    let number = number.unwrap();
    let at = |second: u64| http_date(UNIX_EPOCH + Duration::from_secs(second));
    let object = &world.shelf.objects[number];
    let fields = [
        send(&world, number, 20),
        (VERSION, "20".to_owned()),
        ("last-modified", at(100)),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    let answer = Answer {
        status: Some(304),
        headers: Headers(fields.to_vec()),
        body: Vec::new(),
        asked: object.since(20),
        progressed: object.since(20),
        ended: object.since(20),
        ..right(&world, 20)
    };
    for (copy, right) in [(99, false), (100, true), (101, true)] {
        let ask = Ask {
            object: number,
            validator: Some(at(copy)),
            ..ask()
        };
        let judged = judged(&world, &ask, &answer);
        assert_eq!(judged.is_ok(), right, "{copy}: {judged:?}");
    }
}

#[test]
fn a_refusal_is_for_the_client_that_has_caused_it() {
    let world = world();
    let refusal = |fetch: usize| Answer {
        status: Some(REFUSED),
        headers: Headers(vec![(FETCH.to_owned(), fetch.to_string())]),
        body: Vec::new(),
        ..right(&world, 0)
    };
    let begun = Duration::from_millis(1);
    let fetch = || world.shelf.fetches.begin(fetch(OBJECT, 0, begun));
    let padded = Ask {
        padding: Some(6_000),
        ..ask()
    };
    let own = refusal(fetch());
    assert!(judged(&world, &padded, &own).is_ok());
    assert_eq!(judged(&world, &padded, &own), Err(Wrong::Answer), "twice");
    let other = refusal(fetch());
    assert_eq!(judged(&world, &ask(), &other), Err(Wrong::Answer));
    let mut older = refusal(fetch());
    older.asked = Duration::from_millis(2);
    assert_eq!(judged(&world, &padded, &older), Err(Wrong::Answer));
}

#[test]
fn what_is_too_old_is_wrong() {
    let world = world();
    let mut old = right(&world, 20);
    let object = &world.shelf.objects[OBJECT];
    old.asked = object.replaced(20) + object.reach();
    assert!(judged(&world, &ask(), &old).is_ok());
    old.asked += ROUNDING + object.fill_time() + Duration::from_millis(1);
    old.ended = old.asked;
    assert_eq!(judged(&world, &ask(), &old), Err(Wrong::Answer));
}

#[test]
fn errors_and_answers_without_end_need_a_reason() {
    let world = world();
    let mut error = right(&world, 20);
    error.status = Some(503);
    assert_eq!(judged(&world, &ask(), &error), Err(Wrong::Cut));
    error.end = End::Stuck;
    assert_eq!(judged(&world, &ask(), &error), Err(Wrong::Stuck));
}

#[test]
fn what_the_origin_has_not_confirmed_lately_is_wrong_and_so_are_other_dates_and_ages() {
    let world = world();
    // An object that never changes.
    let never = |object: &Object| object.interval.is_none() && object.kind == Kind::Stored;
    let number = world.shelf.objects.iter().rposition(never).unwrap();
    let object = &world.shelf.objects[number];
    let ask = Ask {
        object: number,
        ..ask()
    };
    let date = send(&world, number, 0);
    let size = object.size(0);
    let fields = [
        date,
        (VERSION, "0".to_owned()),
        ("etag", "\"0\"".to_owned()),
        ("content-length", size.to_string()),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    let at = |asked: Moment| Answer {
        headers: Headers(fields.to_vec()),
        body: object.content("a", 0).slice(0..size),
        asked,
        ended: asked,
        ..right(&world, 20)
    };
    let last = object.reach() + object.fill_time() + ROUNDING;
    let fresh = at(last);
    assert!(judged(&world, &ask, &fresh).is_ok());
    let late = at(last + Duration::from_millis(1));
    assert_eq!(judged(&world, &ask, &late), Err(Wrong::Answer));
    for (name, value) in [
        ("date", http_date(UNIX_EPOCH + Duration::from_secs(7_200))),
        ("age", (last.as_secs() + 1).to_string()),
    ] {
        let mut other = fresh.clone();
        other.headers.0.retain(|(known, _)| known != name);
        other.headers.0.push((name.to_owned(), value));
        assert_eq!(judged(&world, &ask, &other), Err(Wrong::Answer), "{name}");
    }
}

/// A refusal by access rules at this time.
fn refusal(world: &World, at: Moment) -> Answer {
    let cache_control = ("cache-control".to_owned(), "no-store".to_owned());
    Answer {
        status: Some(403),
        headers: Headers(vec![cache_control]),
        body: b"Access denied.\n".to_vec(),
        asked: at,
        ended: at,
        ..right(world, 20)
    }
}

#[test]
fn a_refusal_is_for_a_wrong_request_and_for_a_key_that_is_not_valid() {
    let second = Moment::from_secs;
    let world = world();
    world.generations.begin(second(10));
    world.generations.confirm(second(12));
    let judged = |pass: Pass, answer: &Answer| judged(&world, &Ask { pass, ..ask() }, answer);
    for (pass, at, refused, admitted) in [
        (Pass::Link(1), 8, false, true),
        (Pass::Link(0), 8, false, true),
        (Pass::Cookie(0), 11, true, true),
        (Pass::Cookie(0), 13, true, false),
        (Pass::Link(2), 8, true, false),
        (Pass::Link(2), 13, false, true),
        (Pass::Unsigned, 8, true, false),
        (Pass::Expired(0), 8, true, false),
        (Pass::Forged(0), 8, true, false),
        (Pass::Elsewhere(0), 8, true, false),
    ] {
        let refusal = refusal(&world, second(at));
        assert_eq!(
            judged(pass, &refusal).is_ok(),
            refused,
            "{pass:?} at {at} s"
        );
        let version = world.shelf.objects[OBJECT].version(second(at));
        let mut whole = right(&world, version);
        (whole.asked, whole.ended) = (second(at), second(at));
        assert_eq!(judged(pass, &whole).is_ok(), admitted, "{pass:?} at {at} s");
    }
    let mut telling = refusal(&world, second(8));
    telling
        .headers
        .0
        .push(("etag".to_owned(), "\"20\"".to_owned()));
    assert_eq!(judged(Pass::Unsigned, &telling), Err(Wrong::Answer));
}

#[test]
fn a_response_is_of_a_generation_that_may_be_in_force() {
    let mut world = world();
    world.has_files = true;
    world.generations.begin(Moment::from_secs(5));
    world.generations.confirm(Moment::from_secs(6));
    for (generation, is_right) in [(0, false), (1, true), (2, false)] {
        let mut answer = right(&world, 20);
        let field = (GENERATION.to_owned(), generation.to_string());
        answer.headers.0.push(field);
        let judged = judged(&world, &ask(), &answer);
        assert_eq!(judged.is_ok(), is_right, "{generation}: {judged:?}");
    }
}
