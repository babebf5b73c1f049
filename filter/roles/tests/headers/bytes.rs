// SPDX-License-Identifier: Apache-2.0
//! Header values that are not text: they arrive byte for byte, whatever a client or an origin sends, and a value that
//! cannot be read decides nothing.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_fake::{Client, FakeEnvoy, FetchId, HeaderTexts as _};

use crate::support::{FIRST, KEY, document, envoy, fill, live};

/// A file name in Latin-1, as many origins send it.
const LATIN_1: &[u8] = b"attachment; filename=\"M\xfcller.pdf\"";
const CONTROL: (&str, &[u8]) = ("cache-control", b"max-age=60");

/// Answers a fetch with these headers, which may not be text, and ends the fill.
fn answer(envoy: &mut FakeEnvoy, fetch: FetchId, headers: &[(&str, &[u8])]) {
    envoy.answer_with_bytes(fetch, 200, headers, b"an object");
    fill(envoy, fetch);
}

fn ask(envoy: &mut FakeEnvoy, headers: &[(&str, &[u8])]) -> Client {
    let client = envoy.request_with_bytes(0, "GET", KEY, headers);
    envoy.check();
    client
}

/// The status of a client's response, and one of its headers.
fn got<'a>(envoy: &'a FakeEnvoy, client: Client, name: &str) -> (u16, Option<&'a [u8]>) {
    let client = &envoy.clients[client.0];
    (client.status(), client.header_bytes(name))
}

/// The values of a header in the origin's requests.
fn asked<'a>(envoy: &'a FakeEnvoy, name: &str) -> Vec<Option<&'a [u8]>> {
    let fetches = envoy.fetches.iter();
    fetches.map(|fetch| fetch.headers.bytes(name)).collect()
}

#[test]
fn a_response_header_in_latin_1_is_stored_and_served_byte_for_byte() {
    const NAME: &str = "x-title";
    const DISPOSITION: &str = "content-disposition";
    let hot = r#""hot": {"max_bytes": 100000}"#;
    let mut envoy = FakeEnvoy::new(&document(hot), 1);
    let miss = ask(&mut envoy, &[]);
    let headers = [
        CONTROL,
        ("etag", b"\"v1\""),
        (DISPOSITION, LATIN_1),
        (NAME, LATIN_1),
    ];
    answer(&mut envoy, FIRST, &headers);
    let mut clients = vec![(miss, 200)];
    for _ in 0..3 {
        for (method, more, status) in [
            ("GET", None, 200),
            ("HEAD", None, 200),
            ("GET", Some(("range", &b"bytes=0-1"[..])), 206),
            ("GET", Some(("if-none-match", b"\"v1\"")), 304),
        ] {
            let more: Vec<_> = more.into_iter().collect();
            let client = envoy.request_with_bytes(0, method, KEY, &more);
            envoy.close_all();
            clients.push((client, status));
        }
    }
    let is_hot = |client: &Client| {
        let said = envoy.clients[client.0].header("cache-status");
        said.unwrap_or_default().contains("detail=hot")
    };
    assert!(clients.iter().any(|(client, _)| is_hot(client)));
    for (client, status) in clients {
        assert_eq!(got(&envoy, client, NAME), (status, Some(LATIN_1)));
        let described = (status != 304).then_some(LATIN_1);
        assert_eq!(got(&envoy, client, DISPOSITION), (status, described));
    }
    assert_eq!(envoy.fetches.len(), 1);
}

#[test]
fn a_field_that_decides_and_cannot_be_read_keeps_a_response_out_of_the_store() {
    for (name, value) in [
        ("cache-control", &b"no-store, \xff"[..]),
        ("cache-control", b"max-age=60, x=\"\xff\""),
        ("expires", b"\xff"),
        ("vary", b"Accept, \xff"),
        ("surrogate-key", b"a \xff"),
        ("cache-tag", b"\xff"),
        ("xkey", b"\xff"),
        ("cache-groups", b"\"\xff\""),
    ] {
        let mut envoy = envoy(1);
        let first = ask(&mut envoy, &[]);
        let control = (name != "cache-control" && name != "expires").then_some(CONTROL);
        let headers: Vec<_> = control.into_iter().chain([(name, value)]).collect();
        answer(&mut envoy, FIRST, &headers);
        // Surrogate keys are removed from the client's response.
        let hidden = ["surrogate-key", "cache-tag", "xkey"].contains(&name);
        let told = (!hidden).then_some(value);
        assert_eq!(got(&envoy, first, name), (200, told), "{name}");
        ask(&mut envoy, &[]);
        assert_eq!(envoy.fetches.len(), 2, "{name}");
    }
}

#[test]
fn an_entity_tag_that_cannot_be_read_is_sent_on_and_validates_nothing() {
    const TAG: &[u8] = b"\"\xff\"";
    let mut envoy = envoy(1);
    ask(&mut envoy, &[]);
    answer(&mut envoy, FIRST, &[CONTROL, ("etag", TAG)]);
    let hit = ask(&mut envoy, &[]);
    assert_eq!(got(&envoy, hit, "etag"), (200, Some(TAG)));
    for condition in [TAG, b"\"\xfe\""] {
        let client = ask(&mut envoy, &[("if-none-match", condition)]);
        envoy.close_all();
        assert_eq!(got(&envoy, client, "etag"), (200, Some(TAG)));
    }
    assert_eq!(envoy.fetches.len(), 1);
    envoy.advance(120_000);
    ask(&mut envoy, &[]);
    assert_eq!(asked(&envoy, "if-none-match"), [None, None]);
}

#[test]
fn without_a_validator_that_can_be_read_what_each_use_validates_is_not_stored() {
    for (name, value) in [("etag", &b"\"\xff\""[..]), ("last-modified", b"\xff")] {
        let mut envoy = envoy(1);
        ask(&mut envoy, &[]);
        let headers = [("cache-control", &b"no-cache"[..]), (name, value)];
        answer(&mut envoy, FIRST, &headers);
        ask(&mut envoy, &[]);
        assert_eq!(
            envoy.counter(sluice_core::metrics::Metric::HitForMissMarked),
            1
        );
        assert_eq!(asked(&envoy, "if-none-match"), [None, None], "{name}");
    }
}

#[test]
fn the_origin_is_asked_with_the_very_bytes_that_the_key_has() {
    let key = r#""key": {"headers": ["x-country"]}"#;
    for (policy, name) in [(key, "x-country"), ("", "accept-language")] {
        let vary = (policy.is_empty()).then_some(("vary", name.as_bytes()));
        let headers: Vec<_> = [CONTROL].into_iter().chain(vary).collect();
        let mut envoy = FakeEnvoy::new(&document(policy), 1);
        for (number, value) in [Some(&b"evil;\xff"[..]), Some(b"evil;\xfe"), None]
            .into_iter()
            .enumerate()
        {
            let sent: Vec<_> = value.into_iter().map(|value| (name, value)).collect();
            ask(&mut envoy, &sent);
            assert_eq!(envoy.fetches.len(), number + 1, "{name}");
            answer(&mut envoy, FetchId(number), &headers);
            let again = ask(&mut envoy, &sent);
            envoy.close_all();
            assert_eq!(got(&envoy, again, "cache-control").0, 200);
            assert_eq!(envoy.fetches.len(), number + 1, "{name}");
        }
        let expected = [Some(&b"evil;\xff"[..]), Some(b"evil;\xfe"), None];
        assert_eq!(asked(&envoy, name), expected);
    }
}

#[test]
fn the_first_variant_is_stored_only_where_the_origin_was_asked_with_what_the_key_has() {
    const REDUCED: &[u8] = b"image/avif,image/webp,*/*";
    let policy = r#""vary": {"accept": ["image/avif", "image/webp"]}"#;
    let headers = [CONTROL, ("vary", &b"Accept"[..])];
    for (sent, fetches) in [(&b"image/webp, image/avif;q=0.1"[..], 2), (REDUCED, 1)] {
        let mut envoy = FakeEnvoy::new(&document(policy), 1);
        ask(&mut envoy, &[("accept", sent)]);
        answer(&mut envoy, FIRST, &headers);
        ask(&mut envoy, &[("accept", b"image/avif, image/webp")]);
        assert_eq!(envoy.fetches.len(), fetches);
        assert_eq!(asked(&envoy, "accept")[fetches - 1], Some(REDUCED));
    }
}

#[test]
fn what_the_key_does_not_have_is_forwarded_byte_for_byte_and_shared() {
    let mut envoy = envoy(1);
    let (referer, origin) = (
        ("referer", &b"http://a.test/\xfc"[..]),
        ("origin", &b"\xff"[..]),
    );
    ask(&mut envoy, &[referer, origin]);
    answer(&mut envoy, FIRST, &[CONTROL]);
    let hit = ask(&mut envoy, &[]);
    assert_eq!(got(&envoy, hit, "cache-control").0, 200);
    assert_eq!(asked(&envoy, referer.0), [Some(referer.1)]);
}

#[test]
fn a_fill_in_the_background_has_the_bytes_of_its_client() {
    let mut envoy = envoy(1);
    let referer = ("referer", &b"http://a.test/\xfc"[..]);
    let client = ask(&mut envoy, &[("if-none-match", b"\"v0\""), referer]);
    live(&mut envoy, 50);
    assert_eq!(asked(&envoy, referer.0), [Some(referer.1)]);
    answer(&mut envoy, FIRST, &[CONTROL]);
    assert_eq!(got(&envoy, client, "cache-control").0, 200);
}

#[test]
fn an_unsafe_method_invalidates_what_its_response_names_by_bytes() {
    let mut envoy = envoy(1);
    ask(&mut envoy, &[]);
    answer(&mut envoy, FIRST, &[CONTROL]);
    envoy.request(0, "POST", 9, &[]);
    let location = &b"http://edge.test/7#\xff"[..];
    envoy.answer_with_bytes(FetchId(1), 201, &[("location", location)], b"");
    envoy.end(FetchId(1));
    ask(&mut envoy, &[]);
    assert_eq!(envoy.fetches.len(), 3);
}

#[test]
fn an_empty_vary_is_none() {
    let mut envoy = envoy(1);
    ask(&mut envoy, &[]);
    answer(&mut envoy, FIRST, &[CONTROL, ("vary", b"")]);
    let hit = ask(&mut envoy, &[]);
    assert_eq!(got(&envoy, hit, "x-sluice-vary"), (200, None));
    assert_eq!(envoy.fetches.len(), 1);
}
