// SPDX-License-Identifier: Apache-2.0
//! Headers that the store gets, and headers that its client gets back.

use super::*;

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const SECONDS: i64 = 784_111_777;
const STORED: &str = "sluice 10 0 0 a - - \"x\"";

fn storage() -> Storage {
    Storage {
        lifetime: Lifetime {
            ttl: 60,
            stale_while_revalidate: 5,
            stale_if_error: 0,
        },
        age: 7,
        forbids_stale: false,
        disguise: false,
        may_ask: true,
        is_said: true,
        allows_authenticated: false,
        is_index: false,
    }
}

fn response() -> OriginResponse<'static> {
    OriginResponse {
        fill: FillId {
            nonce: 1,
            stream: 2,
        },
        key: "h/k",
        variant: None,
        status: 200,
        purge: 3,
        declared: 2,
        received: SECONDS + 7,
        freshens: None,
        cache_control: Some("public".into()),
        date: Some(FieldValue::new(DATE.as_bytes())),
        accept_ranges: None,
        is_intact: true,
        etag: Some(FieldValue::new(b"\"x\"")),
        last_modified: Some(FieldValue::new(DATE.as_bytes())),
        strips_set_cookie: false,
        has_vary: false,
        vary: None,
    }
}

fn revalidation() -> Revalidation {
    Revalidation::parse(Some(STORED.into()), Some(DATE.into()), SECONDS).unwrap()
}

/// Returns the headers of a message after `edits`, in the order of their names.
fn edited<'a>(
    before: &[(&'a str, &'a str)],
    edits: &'a [HeaderEdit<'a>],
) -> Vec<(&'a str, &'a str)> {
    let mut headers: std::collections::BTreeMap<_, _> = before.iter().copied().collect();
    for edit in edits {
        match edit {
            HeaderEdit::Set(name, value) => headers.insert(*name, text(value)),
            HeaderEdit::Remove(name) => headers.remove(name),
        };
    }
    headers.into_iter().collect()
}

fn text(value: &[u8]) -> &str {
    FieldValue::new(value).text().unwrap()
}

fn value<'a>(edits: &'a [HeaderEdit<'a>], wanted: &str) -> Option<&'a str> {
    let mut found = edits.iter().filter_map(|edit| match edit {
        HeaderEdit::Set(name, value) if *name == wanted => Some(text(value)),
        _ => None,
    });
    found.next()
}

fn removes(edits: &[HeaderEdit<'_>], name: &str) -> bool {
    edits.contains(&HeaderEdit::Remove(name))
}

#[test]
fn a_stored_response_tells_the_store_the_policy_and_keeps_what_the_origin_said() {
    let response = response();
    let edits = response.stored(&storage());
    assert_eq!(value(&edits, "cache-control"), Some("max-age=65"));
    assert_eq!(value(&edits, STORED_CACHE_CONTROL), Some("public"));
    assert_eq!(value(&edits, "accept-ranges"), Some("bytes"));
    assert_eq!(
        value(&edits, "etag"),
        Some("sluice 60 5 0 3 - 784111777 \"x\"")
    );
    assert!(removes(&edits, "last-modified"));
}

#[test]
fn the_time_in_other_caches_goes_into_the_date_from_which_the_store_counts() {
    let response = OriginResponse {
        date: None,
        ..response()
    };
    let edits = response.stored(&storage());
    assert_eq!(value(&edits, "date"), Some(DATE));
    assert!(removes(&edits, "age"));
}

#[test]
fn the_origins_date_comes_back_where_the_store_has_another() {
    let skewed = "Sun, 06 Nov 1994 08:00:00 GMT";
    let response = OriginResponse {
        date: Some(skewed.into()),
        ..response()
    };
    let edits = response.stored(&storage());
    assert_eq!(value(&edits, "date"), Some(DATE));
    let kept = edited(&[], &edits);
    let fields = kept.iter();
    let fields = StoredFields::of(fields.map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    let restored = restored(&fields.entry().unwrap(), &fields);
    assert_eq!(value(&restored, "date"), Some(skewed));
    assert!(removes(&restored, STORED_DATE));
}

#[test]
fn a_date_is_kept_only_where_it_is_one_and_differs_or_another_may_be_stored() {
    let revalidation = revalidation();
    let kept = |date: Option<&'static str>, freshens| {
        let response = OriginResponse {
            date: date.map(FieldValue::from),
            freshens,
            ..response()
        };
        value(&response.stored(&storage()), STORED_DATE).map(str::to_owned)
    };
    assert_eq!(kept(Some(DATE), None), None);
    assert_eq!(kept(Some("soon"), None), None);
    assert_eq!(kept(None, None), None);
    assert_eq!(kept(Some(DATE), Some(&revalidation)).as_deref(), Some(DATE));
}

#[test]
fn what_must_not_be_served_stale_says_so_to_the_store() {
    let strict = Storage {
        forbids_stale: true,
        ..storage()
    };
    let response = response();
    let edits = response.stored(&strict);
    let control = value(&edits, "cache-control");
    assert_eq!(control, Some("max-age=65, must-revalidate"));
}

#[test]
fn what_each_use_validates_is_stored_so_that_the_store_always_asks() {
    let each_use = Storage {
        lifetime: Lifetime::default(),
        ..storage()
    };
    let response = response();
    let edits = response.stored(&each_use);
    assert_eq!(value(&edits, "cache-control"), Some("no-cache"));
    assert_eq!(value(&edits, STORED_CACHE_CONTROL), Some("public"));
}

#[test]
fn a_304_to_credentials_leaves_no_trace_in_the_store() {
    let stored = Revalidation::parse(Some(STORED.into()), Some(DATE.into()), SECONDS).unwrap();
    let response = OriginResponse {
        status: 304,
        freshens: Some(&stored),
        ..response()
    };
    let edits = response.untraced();
    // The store writes a 304 that has exactly the stored tag.
    let kept = format!("kept {STORED}");
    assert_eq!(value(&edits, "etag"), Some(kept.as_str()));
    assert_eq!(value(&edits, "cache-control"), Some("no-store"));
    assert!(removes(&edits, "last-modified"));
}

#[test]
fn a_status_that_the_store_does_not_take_is_disguised_and_comes_back() {
    let disguise = Storage {
        disguise: true,
        may_ask: false,
        ..storage()
    };
    let response = OriginResponse {
        status: 404,
        ..response()
    };
    let edits = response.stored(&disguise);
    assert_eq!(value(&edits, ":status"), Some("501"));
    let tag = value(&edits, "etag").unwrap();
    assert_eq!(tag, "sluice-unasked 60 5 0 3 - 784111777 \"x\"");
    assert!(removes(&edits, "last-modified"));
    assert_eq!(value(&edits, "accept-ranges"), None);
    let entry = Entry::parse(value(&edits, ENTRY_HEADER).unwrap()).unwrap();
    let fields = StoredFields::of([(&b"etag"[..], tag.as_bytes())].into_iter());
    let restored = restored(&entry, &fields);
    assert_eq!(value(&restored, ":status"), Some("404"));
    assert_eq!(value(&restored, "etag"), Some("\"x\""));
    assert_eq!(value(&restored, "last-modified"), Some(DATE));
}

#[test]
fn a_304_freshens_the_stored_response_by_its_own_tag() {
    let stored = revalidation();
    let response = OriginResponse {
        status: 304,
        freshens: Some(&stored),
        ..response()
    };
    for edits in [response.stored(&storage()), response.unstored()] {
        assert_eq!(value(&edits, "etag"), Some(STORED));
        assert!(removes(&edits, "last-modified"));
        let entry = Entry::parse(value(&edits, ENTRY_HEADER).unwrap()).unwrap();
        assert!(entry.revalidated && entry.status == 200);
    }
}

#[test]
fn a_304_without_room_leaves_the_stored_response_as_it_is() {
    let stored = revalidation();
    let response = OriginResponse {
        status: 304,
        freshens: Some(&stored),
        ..response()
    };
    let edits = response.without_room(&storage());
    assert_eq!(value(&edits, "etag"), Some(text(&stored.unwritten())));
    assert_eq!(value(&edits, "age"), Some("7"));
    assert_eq!(value(&edits, "cache-control"), Some("no-store"));
}

#[test]
fn a_response_without_room_is_marked_as_one_that_lacks_it() {
    let response = response();
    let edits = response.without_room(&storage());
    let entry = Entry::parse(value(&edits, ENTRY_HEADER).unwrap()).unwrap();
    assert!(entry.lacks_room() && entry.purge == 3);
    assert_eq!(value(&edits, "etag"), None);
}

#[test]
fn an_unstored_response_is_marked_and_otherwise_left_to_its_client() {
    let response = OriginResponse {
        strips_set_cookie: true,
        has_vary: true,
        vary: Some("origin".into()),
        ..response()
    };
    let edits = response.unstored();
    let names: Vec<_> = edited(&[], &edits).iter().map(|(name, _)| *name).collect();
    let expected = ["cache-control", STORED_CACHE_CONTROL, ENTRY_HEADER];
    assert_eq!(names, expected);
    let entry = Entry::parse(value(&edits, ENTRY_HEADER).unwrap()).unwrap();
    assert!(!entry.stored && !entry.lacks_room());
}

#[test]
fn cookies_go_into_no_response_that_others_get() {
    let response = OriginResponse {
        strips_set_cookie: true,
        ..response()
    };
    for edits in [
        response.stored(&storage()),
        response.without_room(&storage()),
    ] {
        assert!(removes(&edits, "set-cookie"));
    }
}

#[test]
fn vary_is_hidden_from_the_store() {
    let response = OriginResponse {
        has_vary: true,
        vary: Some("origin".into()),
        ..response()
    };
    let edits = response.stored(&storage());
    assert_eq!(value(&edits, STORED_VARY), Some("origin"));
    assert!(removes(&edits, "vary"));
}

#[test]
fn what_the_origin_said_comes_back_out_of_the_store() {
    let before = [
        (":status", "200"),
        ("cache-control", "public"),
        ("date", DATE),
        ("etag", "\"x\""),
        ("last-modified", DATE),
    ];
    let response = response();
    let edits = response.stored(&storage());
    let mut kept = edited(&before, &edits);
    kept.push((UPSTREAM_SERVICE_TIME, "4"));
    let fields = kept.iter();
    let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let fields = StoredFields::of(fields);
    let restored = restored(&fields.entry().unwrap(), &fields);
    let mut expected = before.to_vec();
    expected.extend([("accept-ranges", "bytes")]);
    expected.sort_unstable();
    assert_eq!(edited(&kept, &restored), expected);
}

#[test]
fn what_a_response_says_as_the_store_needs_it_is_not_written_again() {
    let response = OriginResponse {
        cache_control: Some("max-age=65".into()),
        accept_ranges: Some("bytes".into()),
        ..response()
    };
    let edits = response.stored(&storage());
    for name in ["cache-control", "date", "accept-ranges"] {
        assert_eq!(value(&edits, name), None, "{name}");
    }
    let said = [("cache-control", "max-age=65")];
    let kept = edited(&said, &edits);
    let fields = kept.iter();
    let fields = StoredFields::of(fields.map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    let restored = restored(&fields.entry().unwrap(), &fields);
    assert_eq!(value(&restored, "cache-control"), None);
    assert!(removes(&restored, STORED_CACHE_CONTROL));
}

#[test]
fn a_cache_control_stays_that_tells_the_store_nothing_else() {
    for own in ["max-age=65", "public, max-age=65", "max-age=65, immutable"] {
        assert!(tells(own.into(), "max-age=65"), "{own}");
    }
    for own in [
        "max-age=66",
        "public,max-age=65",
        "max-age=65, must-revalidate",
        "max-age=65, max-age=65",
        "Max-Age=65",
        "public",
        "",
    ] {
        assert!(!tells(own.into(), "max-age=65"), "{own}");
    }
}

#[test]
fn what_may_have_been_taken_out_of_a_response_is_written() {
    let response = OriginResponse {
        cache_control: Some("max-age=65".into()),
        accept_ranges: Some("bytes".into()),
        is_intact: false,
        ..response()
    };
    let edits = response.stored(&storage());
    assert_eq!(value(&edits, "cache-control"), Some("max-age=65"));
    assert_eq!(value(&edits, "date"), Some(DATE));
    assert_eq!(value(&edits, "accept-ranges"), Some("bytes"));
}

#[test]
fn a_cache_control_that_only_the_store_was_told_is_removed() {
    let response = OriginResponse {
        cache_control: None,
        etag: None,
        last_modified: None,
        ..response()
    };
    let edits = response.stored(&storage());
    let kept = edited(&[], &edits);
    let fields = kept.iter();
    let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let fields = StoredFields::of(fields);
    let restored = restored(&fields.entry().unwrap(), &fields);
    assert!(removes(&restored, "cache-control") && removes(&restored, "etag"));
    assert_eq!(value(&restored, "last-modified"), None);
}

#[test]
fn what_is_no_text_comes_back_out_of_the_store_byte_for_byte() {
    let (etag, control) = (FieldValue::new(b"\"\xff\""), b"x=\xff".to_vec());
    let response = OriginResponse {
        cache_control: Some(control.clone().into()),
        etag: Some(etag),
        last_modified: None,
        ..response()
    };
    let edits = response.stored(&storage());
    let set = |edit: &HeaderEdit<'_>| match edit {
        HeaderEdit::Set(name, value) => Some((name.as_bytes().to_vec(), value.to_vec())),
        HeaderEdit::Remove(_) => None,
    };
    let kept: Vec<_> = edits.iter().filter_map(set).collect();
    let fields = kept.iter();
    let fields = StoredFields::of(fields.map(|(name, value)| (&**name, &**value)));
    let restored = restored(&fields.entry().unwrap(), &fields);
    for (name, value) in [("etag", etag.bytes()), ("cache-control", &control)] {
        let edit = HeaderEdit::Set(name, value.into());
        assert!(restored.contains(&edit), "{name}");
    }
}
