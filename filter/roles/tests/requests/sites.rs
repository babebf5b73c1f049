// SPDX-License-Identifier: Apache-2.0
//! Several sites of one edge: no request gets an object of another site.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use sluice_core::coalescing::StoreRequest;
use sluice_core::internal_headers::SERVER_HEADER;
use sluice_core::metrics::Metric;
use sluice_core::policy::purge::TokenHash;
use sluice_fake::sites::{Rng, SiteRequest, Table, Verdict};
use sluice_fake::{Client, FakeEnvoy, FetchId, HeaderTexts as _};

use crate::support::{FIRST, KEY, admission, assert_all_over, fill};

/// The token of the site `two`.
const TOKEN: &str = "battery horse correct";

/// Three sites: two by their hosts, and one below a path of the second host. `first` has fields of the first site's
/// policy, and `fields` has fields of the site.
fn document(first: &str, fields: &str) -> String {
    format!(
        r#"{{
        "edge": {{
            "purge": {{"warm": false, "token_sha256": "{}"}},
            "hot": {{"max_bytes": 100000}},
            "limits": {{"hints": 64, "varying_urls": 64}}
        }},
        "sites": [
            {{"name": "one", "hosts": ["one.test"], {fields} "policy": {{"origin": {{"kind": "http"}} {first}}}}},
            {{"name": "two", "hosts": ["two.test"], "purge_token_sha256": "{}",
              "server": "two-2", "policy": {{"origin": {{"kind": "http"}}}}}},
            {{"name": "three", "hosts": ["two.test"], "path": "/3", "policy": {{"origin": {{"kind": "http"}}}}}}
        ]}}"#,
        FakeEnvoy::token_hash(),
        TokenHash::of(TOKEN.as_bytes()).to_hex(),
    )
}

fn envoy(workers: usize) -> FakeEnvoy {
    FakeEnvoy::new(&document("", ""), workers)
}

fn get(envoy: &mut FakeEnvoy, host: &str, key: u64) -> Client {
    envoy.request(0, "GET", key, &[(":authority", host)])
}

/// Stores the same path of the sites `one` and `two`.
fn fill_both(envoy: &mut FakeEnvoy) {
    for (fetch, host) in ["one.test", "two.test"].into_iter().enumerate() {
        get(envoy, host, KEY);
        fill(envoy, FetchId(fetch));
    }
}

/// Checks that the object of the site `one` is stored, and that the object of the site `two` is purged.
fn assert_purged_of_two_alone(envoy: &mut FakeEnvoy) {
    let kept = get(envoy, "one.test", KEY);
    assert_eq!(admission(envoy, kept), Some(StoreRequest::Fresh));
    let gone = get(envoy, "two.test", KEY);
    assert_eq!(admission(envoy, gone), Some(StoreRequest::Lead));
}

/// Status of a client's response.
fn status(envoy: &FakeEnvoy, client: Client) -> u16 {
    envoy.clients[client.0].status()
}

fn header<'a>(envoy: &'a FakeEnvoy, client: Client, name: &str) -> Option<&'a str> {
    let response = envoy.clients[client.0].response.as_ref()?;
    response.headers.get(name)
}

/// The server to which the hop sends a fetch, and the `Host` that this origin sees.
fn destination(envoy: &FakeEnvoy, fetch: FetchId) -> (Option<&str>, Option<&str>) {
    let headers = &envoy.fetches[fetch.0].headers;
    (headers.get(SERVER_HEADER), headers.get(":authority"))
}

#[test]
fn the_same_path_of_two_sites_is_two_objects_of_two_origins() {
    let mut envoy = envoy(1);
    let one = get(&mut envoy, "one.test", KEY);
    let two = get(&mut envoy, "two.test:8080", KEY);
    assert_eq!(
        [one, two].map(|client| admission(&envoy, client)),
        [Some(StoreRequest::Lead); 2]
    );
    assert_eq!(destination(&envoy, FIRST), (Some("one"), Some("one.test")));
    assert_eq!(
        destination(&envoy, FetchId(1)),
        (Some("two-2"), Some("two.test:8080"))
    );
    fill(&mut envoy, FIRST);
    envoy.close_all();
    let hit = get(&mut envoy, "ONE.test", KEY);
    assert_eq!(admission(&envoy, hit), Some(StoreRequest::Fresh));
    envoy.close_all();
    for (site, hits) in [("one", 1), ("two", 0)] {
        assert_eq!(envoy.counter_of(site, Metric::RequestsHit), hits);
        assert_eq!(envoy.counter_of(site, Metric::OriginFetches), 1);
    }
    let key = &envoy.fetches[0].cache_key;
    assert!(key.starts_with("one!one.test/7#"), "{key}");
}

/// The bytes of the bodies that these clients got.
fn bytes_of(envoy: &FakeEnvoy, clients: &[Client]) -> u32 {
    let body = |client: &Client| {
        envoy.clients[client.0]
            .response
            .as_ref()
            .unwrap()
            .body
            .len()
    };
    u32::try_from(clients.iter().map(body).sum::<usize>()).unwrap()
}

#[test]
fn the_bytes_of_a_body_count_for_the_site_of_its_request() {
    let mut envoy = envoy(1);
    let miss = get(&mut envoy, "one.test", KEY);
    fill(&mut envoy, FIRST);
    let brought = bytes_of(&envoy, &[miss]);
    let (store, hot) = (
        get(&mut envoy, "one.test", KEY),
        get(&mut envoy, "one.test", KEY),
    );
    let headers = [(":authority", "one.test"), ("range", "bytes=0-0")];
    let part = envoy.request(0, "GET", KEY, &headers);
    let head = envoy.request(0, "HEAD", KEY, &[(":authority", "one.test")]);
    assert!(brought > 1);
    assert_eq!(bytes_of(&envoy, &[part, head]), 1);
    envoy.close_all();
    assert_eq!(envoy.counter_of("one", Metric::HotHits), 3);
    let sent = bytes_of(&envoy, &[miss, store, hot, part, head]);
    assert_eq!(envoy.counter_of("one", Metric::BytesSent), sent);
    assert_eq!(envoy.counter_of("one", Metric::OriginBytes), brought);
    for metric in [Metric::BytesSent, Metric::OriginBytes] {
        assert_eq!(envoy.counter_of("two", metric), 0);
    }
}

#[test]
fn the_time_to_the_first_byte_has_the_result_and_the_site_of_its_request() {
    let mut envoy = envoy(1);
    let leader = get(&mut envoy, "one.test", KEY);
    let follower = get(&mut envoy, "one.test", KEY);
    fill(&mut envoy, FIRST);
    get(&mut envoy, "one.test", KEY);
    let hot = get(&mut envoy, "one.test", KEY);
    assert_eq!(
        [leader, follower, hot].map(|client| status(&envoy, client)),
        [200; 3]
    );
    // The origin does not answer this one.
    get(&mut envoy, "one.test", KEY + 1);
    envoy.close_all();
    assert!(envoy.counter_of("one", Metric::HotHits) > 0);
    for (metric, number) in [
        (Metric::FirstByteHit, 2),
        (Metric::FirstByteCollapsed, 1),
        (Metric::FirstByteMiss, 1),
        (Metric::OriginFirstByte, 1),
    ] {
        assert_eq!(envoy.counter_of("one", metric), number, "{metric:?}");
        assert_eq!(envoy.counter_of("two", metric), 0);
    }
}

#[test]
fn a_site_without_a_label_counts_for_the_edge_alone() {
    let document = document("", r#""metrics_label": false,"#);
    let mut envoy = FakeEnvoy::new(&document, 1);
    fill_both(&mut envoy);
    envoy.close_all();
    for metric in [Metric::RequestsMiss, Metric::FirstByteMiss] {
        let of_sites = ["one", "two"].map(|site| envoy.counter_of(site, metric));
        assert_eq!((envoy.counter(metric), of_sites), (1, [0, 1]), "{metric:?}");
    }
}

#[test]
fn a_path_of_its_own_makes_a_site_of_its_own() {
    let mut envoy = envoy(1);
    get(&mut envoy, "two.test", 3);
    get(&mut envoy, "two.test", 33);
    let odd = envoy.request(
        0,
        "GET",
        3,
        &[(":authority", "two.test"), (":path", "/x/../3/y")],
    );
    assert_eq!(admission(&envoy, odd), Some(StoreRequest::Lead));
    let sites = [0, 1, 2].map(|fetch| destination(&envoy, FetchId(fetch)).0);
    assert_eq!(sites, [Some("three"), Some("two-2"), Some("three")]);
}

#[test]
fn what_no_site_takes_is_answered_by_the_edge() {
    let mut envoy = envoy(1);
    for (host, expected) in [
        ("three.test", 421),
        ("one.test.two.test", 421),
        ("a b", 400),
    ] {
        let client = get(&mut envoy, host, KEY);
        assert_eq!(status(&envoy, client), expected, "{host}");
    }
    let config = document("", r#""path": "/x","#);
    let mut envoy = FakeEnvoy::new(&config, 1);
    let client = get(&mut envoy, "one.test", KEY);
    assert_eq!(status(&envoy, client), 404);
    assert_eq!(envoy.fetches.len(), 0);
    assert_all_over(&mut envoy);
}

#[test]
fn no_client_chooses_its_site_by_a_header_of_the_filters_own() {
    let mut envoy = envoy(1);
    let headers = [(":authority", "one.test"), (SERVER_HEADER, "two")];
    envoy.request(0, "GET", KEY, &headers);
    envoy.request(0, "POST", KEY, &headers);
    for fetch in [FIRST, FetchId(1)] {
        assert_eq!(destination(&envoy, fetch), (Some("one"), Some("one.test")));
    }
}

#[test]
fn a_request_over_cleartext_is_sent_to_https_where_its_site_wants_that() {
    let config = document("", r#""redirect_to_https": true, "hsts": "max-age=9","#);
    let mut envoy = FakeEnvoy::new(&config, 1);
    for (method, expected) in [("GET", 301), ("HEAD", 301), ("POST", 308)] {
        let client = envoy.request(0, method, KEY, &[(":authority", "one.test:8080")]);
        assert_eq!(status(&envoy, client), expected);
        assert_eq!(
            header(&envoy, client, "location"),
            Some("https://one.test/7")
        );
        assert_eq!(header(&envoy, client, "strict-transport-security"), None);
    }
    // A client of HTTP/2 over cleartext may claim any scheme. Envoy reports the connection's scheme.
    let claimed = [
        (":authority", "one.test"),
        (":scheme", "https"),
        ("x-forwarded-proto", "http"),
    ];
    let client = envoy.request(0, "GET", KEY, &claimed);
    assert_eq!(status(&envoy, client), 301);
    assert_eq!(header(&envoy, client, "strict-transport-security"), None);
    let secure = [
        (":authority", "one.test"),
        (":scheme", "https"),
        ("x-forwarded-proto", "https"),
    ];
    let miss = envoy.request(0, "GET", KEY, &secure);
    fill(&mut envoy, FIRST);
    let hits: Vec<_> = (0..3)
        .map(|_| {
            let hit = envoy.request(0, "GET", KEY, &secure);
            envoy.close_all();
            hit
        })
        .collect();
    for client in [miss].into_iter().chain(hits) {
        assert_eq!(status(&envoy, client), 200);
        let sts = header(&envoy, client, "strict-transport-security");
        assert_eq!(sts, Some("max-age=9"));
    }
    assert!(envoy.counter_of("one", Metric::HotHits) > 0);
    // The other site has neither setting.
    let other = get(&mut envoy, "two.test", KEY);
    assert_eq!(admission(&envoy, other), Some(StoreRequest::Lead));
}

#[test]
fn a_request_that_proves_to_have_no_body_comes_back_to_its_site() {
    let mut envoy = envoy(1);
    let headers = [(":authority", "two.test"), ("accept", "*/*")];
    let client = envoy.open_ended(0, "GET", KEY, &headers);
    envoy.send_body(client, 0, true);
    assert_eq!(envoy.fetches.len(), 1);
    assert_eq!(
        destination(&envoy, FIRST),
        (Some("two-2"), Some("two.test"))
    );
}

#[test]
fn a_purge_reaches_no_further_than_its_token() {
    let mut envoy = envoy(1);
    fill_both(&mut envoy);
    for (order, expected) in [
        (r#"{"url": "http://one.test/7"}"#, 400),
        (r#"{"url": "http://two.test/3"}"#, 400),
        (r#"{"prefix": "http://one.test/"}"#, 400),
        (r#"{"site": "one", "everything": true}"#, 400),
        (r#"{"url": "/7"}"#, 400),
        (r#"{"site": "two", "everything": true}"#, 200),
        (r#"{"everything": true}"#, 200),
    ] {
        let client = envoy.purge_with(0, TOKEN, order);
        assert_eq!(status(&envoy, client), expected, "{order}");
    }
    let stranger = envoy.purge_with(0, "something else", r#"{"everything": true}"#);
    assert_eq!(status(&envoy, stranger), 401);
    assert_purged_of_two_alone(&mut envoy);
}

#[test]
fn the_edges_own_token_purges_every_site() {
    let mut envoy = envoy(1);
    fill_both(&mut envoy);
    for (order, expected) in [
        (r#"{"surrogate_keys": ["a"]}"#, 400),
        (r#"{"site": "one", "surrogate_keys": ["a"]}"#, 200),
        (r#"{"site": "four", "everything": true}"#, 400),
        (r#"{"url": "http://four.test/7"}"#, 400),
        (r#"{"url": "http://one.test/7"}"#, 200),
        (r#"{"prefix": "http://two.test/"}"#, 200),
    ] {
        let client = envoy.purge(0, order);
        assert_eq!(status(&envoy, client), expected, "{order}");
    }
    for host in ["one.test", "two.test"] {
        let gone = get(&mut envoy, host, KEY);
        assert_eq!(admission(&envoy, gone), Some(StoreRequest::Lead), "{host}");
    }
}

#[test]
fn surrogate_keys_are_those_of_their_site() {
    let mut envoy = envoy(1);
    for (fetch, host) in ["one.test", "two.test"].into_iter().enumerate() {
        get(&mut envoy, host, KEY);
        let headers = [("surrogate-key", "a"), ("cache-control", "max-age=60")];
        envoy.answer_with(FetchId(fetch), 200, &headers, b"x");
        fill(&mut envoy, FetchId(fetch));
    }
    let purge = envoy.purge_with(0, TOKEN, r#"{"surrogate_keys": ["a"]}"#);
    assert_eq!(status(&envoy, purge), 200);
    assert_purged_of_two_alone(&mut envoy);
}

#[test]
fn a_site_whose_policy_stays_keeps_its_copies_and_requests_under_way_keep_theirs() {
    let mut envoy = envoy(1);
    for (fetch, host) in ["one.test", "two.test"].into_iter().enumerate() {
        get(&mut envoy, host, KEY);
        fill(&mut envoy, FetchId(fetch));
        for _ in 0..2 {
            get(&mut envoy, host, KEY);
            envoy.close_all();
        }
    }
    let leader = get(&mut envoy, "one.test", 8);
    let follower = get(&mut envoy, "one.test", 8);
    let ones = envoy.counter_of("one", Metric::HotHits);
    let hot = envoy.counter_of("two", Metric::HotHits);
    envoy.reconfigure(&document(r#", "cache": {"ttl": "1h"}"#, ""));
    let same = get(&mut envoy, "two.test", KEY);
    envoy.close(same);
    assert_eq!(
        envoy.counter_of("two", Metric::HotHits),
        hot + 1,
        "the policy is the same"
    );
    let other = get(&mut envoy, "one.test", KEY);
    envoy.close(other);
    assert_eq!(
        envoy.counter_of("one", Metric::HotHits),
        ones,
        "the policy is another"
    );
    fill(&mut envoy, FetchId(2));
    assert_eq!(
        [leader, follower].map(|client| status(&envoy, client)),
        [200; 2]
    );
    assert_all_over(&mut envoy);
}

#[test]
fn a_site_that_goes_takes_no_more_requests_and_serves_those_under_way() {
    let mut envoy = envoy(1);
    let leader = get(&mut envoy, "one.test", KEY);
    let follower = get(&mut envoy, "one.test", KEY);
    let without = document("", "")
        .replace("\"one\"", "\"four\"")
        .replace("one.test", "four.test");
    envoy.reconfigure(&without);
    let late = get(&mut envoy, "one.test", KEY);
    assert_eq!(status(&envoy, late), 421);
    fill(&mut envoy, FIRST);
    assert_eq!(
        [leader, follower].map(|client| status(&envoy, client)),
        [200; 2]
    );
    assert_all_over(&mut envoy);
}

#[test]
fn the_origin_of_a_request_is_that_of_its_site_however_it_is_spelled() {
    let mut served = 0;
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let table = Table::random(&mut rng);
        let document = table.document(r#""limits": {"hints": 64, "varying_urls": 64}"#, |token| {
            TokenHash::of(token.as_bytes()).to_hex()
        });
        let mut envoy = FakeEnvoy::new(&document, 1);
        for _ in 0..40 {
            let asked = SiteRequest {
                server_name: None,
                ..SiteRequest::random(&mut rng)
            };
            let before = envoy.fetches.len();
            let client = envoy.request(
                0,
                "GET",
                KEY,
                &[
                    (":scheme", asked.scheme),
                    (":authority", &asked.authority),
                    (":path", &asked.path),
                ],
            );
            for fetch in before..envoy.fetches.len() {
                let (server, _) = destination(&envoy, FetchId(fetch));
                let Verdict::Site(site) = table.verdict(&asked) else {
                    panic!("{asked:?} reached {server:?} of {table:?}");
                };
                assert_eq!(server, Some(&*table.sites[site].name), "{asked:?}");
                served += 1;
            }
            envoy.abort(client);
        }
    }
    assert!(served > 200, "{served}");
}

#[test]
fn a_site_without_an_index_of_its_surrogate_keys_loses_its_own_objects_only() {
    let unindexed = document("", "").replace(r#""warm": false"#, r#""warm": true, "journal": []"#);
    let mut envoy = FakeEnvoy::new(&unindexed, 1);
    fill_both(&mut envoy);
    let purge = envoy.purge_with(0, TOKEN, r#"{"surrogate_keys": ["a"]}"#);
    assert_eq!(status(&envoy, purge), 200);
    assert_purged_of_two_alone(&mut envoy);
}

/// FNV-1a of `url`, folded to 16 bits. Any client can compute this hash, which purges once used for URLs.
fn public_hash(url: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = url.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    let folded = hash ^ (hash >> 32);
    (folded ^ (folded >> 16)) & 0xffff
}

/// A path of the site `two` whose URL has the public hash of the stored object of the site `one`.
fn twin_of_one() -> u64 {
    let victim = public_hash(&format!("one!one.test/{KEY}"));
    let mut paths = 0..;
    let twin = paths.find(|path| public_hash(&format!("two!two.test/{path}")) == victim);
    twin.unwrap()
}

#[test]
fn a_purge_of_an_own_url_with_the_hash_of_anothers_covers_the_own_site_alone() {
    let mut envoy = envoy(1);
    fill_both(&mut envoy);
    envoy.close_all();
    let order = format!(r#"{{"url": "http://two.test/{}"}}"#, twin_of_one());
    let call = envoy.purge_with(0, TOKEN, &order);
    assert_eq!(status(&envoy, call), 200);
    let kept = get(&mut envoy, "one.test", KEY);
    assert_eq!(admission(&envoy, kept), Some(StoreRequest::Fresh));
}

#[test]
fn a_group_of_a_url_with_the_hash_of_anothers_has_nothing_of_another_site_revalidated() {
    let mut envoy = envoy(1);
    fill_both(&mut envoy);
    envoy.close_all();
    get(&mut envoy, "two.test", twin_of_one());
    let headers = [
        ("cache-control", "max-age=60"),
        ("cache-groups", "\"list\""),
    ];
    envoy.answer_with(FetchId(2), 200, &headers, b"of a group");
    fill(&mut envoy, FetchId(2));
    envoy.close_all();
    envoy.request(0, "POST", 5, &[(":authority", "two.test")]);
    let named = [("cache-group-invalidation", "\"list\"")];
    envoy.answer_with(FetchId(3), 200, &named, b"changed");
    envoy.end(FetchId(3));
    envoy.close_all();
    let kept = get(&mut envoy, "one.test", KEY);
    assert_eq!(admission(&envoy, kept), Some(StoreRequest::Fresh));
}
