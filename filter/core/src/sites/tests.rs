// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::key::canonicalize;
use serde_json::{Value, json};

fn http(name: &str) -> Value {
    json!({ "name": name, "policy": { "origin": { "kind": "http" } } })
}

fn bucket(name: &str) -> Value {
    let origin = json!({ "kind": "bucket", "bucket": "site", "authority": "s3.test:9000" });
    json!({ "name": name, "policy": { "origin": origin } })
}

fn with(mut site: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        site[name] = value.clone();
    }
    site
}

fn parse(document: &Value) -> Result<Sites, String> {
    Sites::parse(document.to_string().as_bytes()).map_err(|error| error.to_string())
}

fn sites(list: &[Value]) -> Sites {
    parse(&json!({ "sites": list })).unwrap()
}

fn target<'a>(scheme: &'a str, authority: &'a str, path: &'a str) -> Target<'a> {
    Target {
        scheme: Some(scheme),
        authority: authority.as_bytes(),
        path: path.as_bytes(),
    }
}

/// The name of the site of a request over cleartext.
fn found<'a>(sites: &'a Sites, authority: &str, path: &str) -> Result<&'a str, Rejection> {
    let site = sites.find(&target("http", authority, path), || {
        panic!("over cleartext")
    });
    site.map(|site| sites.sites[site].name())
}

/// The key of a request, under the site that takes it.
fn key(sites: &Sites, authority: &str, path: &str) -> Result<String, Rejection> {
    let target = target("http", authority, path);
    let site = sites.find(&target, || None)?;
    let target = canonicalize(&sites.sites[site].policy, &target)?;
    Ok(target.cache_key().to_owned())
}

#[test]
fn an_exact_host_comes_before_a_wildcard_and_that_before_all_others() {
    let sites = sites(&[
        http("others"),
        with(http("wild"), &json!({ "hosts": ["*.Example.com"] })),
        with(http("exact"), &json!({ "hosts": ["www.example.com"] })),
    ]);
    for (authority, expected) in [
        ("www.example.com", "exact"),
        ("WWW.example.com.:8080", "exact"),
        ("cdn.example.com", "wild"),
        ("a.cdn.example.com", "others"),
        ("example.com", "others"),
        ("127.0.0.1", "others"),
    ] {
        assert_eq!(found(&sites, authority, "/x"), Ok(expected), "{authority}");
    }
    assert_eq!(found(&sites, "a b", "/"), Err(Rejection::Authority));
}

#[test]
fn a_host_of_no_site_is_misdirected_and_a_path_of_none_is_not_found() {
    let sites = sites(&[with(
        http("a"),
        &json!({ "hosts": ["a.test"], "path": "/a" }),
    )]);
    assert_eq!(found(&sites, "b.test", "/a"), Err(Rejection::Misdirected));
    assert_eq!(found(&sites, "a.test", "/b"), Err(Rejection::NoSite));
    assert_eq!(found(&sites, "a.test", "/ab"), Err(Rejection::NoSite));
    assert_eq!(found(&sites, "a.test", "/a"), Ok("a"));
    assert_eq!(Rejection::Misdirected.status(), 421);
    assert_eq!(Rejection::NoSite.status(), 404);
}

#[test]
fn the_longest_path_wins_however_it_is_spelled() {
    let sites = sites(&[
        with(http("root"), &json!({ "hosts": ["a.test"] })),
        with(
            http("deep"),
            &json!({ "hosts": ["a.test"], "path": "/x/y/" }),
        ),
        with(
            bucket("bucket"),
            &json!({ "hosts": ["a.test"], "path": "/x" }),
        ),
    ]);
    for (path, expected) in [
        ("/x/y", "deep"),
        ("/x/y/z?q=/x", "deep"),
        ("/x/./y/", "deep"),
        ("/%78/%79", "deep"),
        ("/x/z/../y", "deep"),
        ("/x/yy", "bucket"),
        ("/x/y/../z", "bucket"),
        ("/xx", "root"),
        ("/x/../y", "root"),
        ("/?/x/y", "root"),
        ("http://a.test/x/z", "bucket"),
        ("http://a.test", "root"),
    ] {
        assert_eq!(found(&sites, "a.test", path), Ok(expected), "{path}");
    }
}

#[test]
fn a_path_that_another_spelling_would_move_to_another_site_is_refused() {
    let sites = sites(&[http("root"), with(http("deep"), &json!({ "path": "/x" }))]);
    // With merged slashes the first path is deep's, but an HTTP origin would get a path that is not below the site's.
    // The second path is root's, but root's origin would get a path of deep's.
    for path in ["//x/y", "/x//../y"] {
        assert_eq!(found(&sites, "a.test", path), Err(Rejection::NoSite));
    }
    assert_eq!(
        key(&sites, "a.test", "/x//y"),
        Ok("deep!a.test/x//y".into())
    );
}

#[test]
fn a_prefix_is_of_every_site_that_has_a_url_which_begins_so() {
    let sites = sites(&[
        with(http("root"), &json!({ "hosts": ["a.test"] })),
        with(http("deep"), &json!({ "hosts": ["a.test"], "path": "/x" })),
        with(
            http("deeper"),
            &json!({ "hosts": ["a.test"], "path": "/x/yy" }),
        ),
    ]);
    let below = |path| {
        let sites = sites.below(&target("http", "a.test", path));
        sites.unwrap()
    };
    for (path, expected) in [
        ("/", vec![0, 1, 2]),
        ("/x", vec![0, 1, 2]),
        ("/x/", vec![1, 2]),
        ("/x/y", vec![1, 2]),
        ("/x/yy", vec![1, 2]),
        ("/x/yyy", vec![1]),
        ("/x/yy/", vec![2]),
        ("/xx", vec![0]),
    ] {
        assert_eq!(below(path), expected, "{path}");
    }
}

#[test]
fn keys_of_different_sites_are_different() {
    let sites = sites(&[
        with(bucket("a"), &json!({ "hosts": ["a.test"] })),
        with(bucket("b"), &json!({ "hosts": ["b.test"] })),
        with(http("c"), &json!({ "hosts": ["c.test"] })),
    ]);
    let keys = ["a.test", "b.test", "c.test"].map(|host| key(&sites, host, "/x").unwrap());
    assert_eq!(
        keys,
        [
            "a!s3.test:9000/site/x",
            "b!s3.test:9000/site/x",
            "c!c.test/x"
        ]
    );
    for (index, key) in keys.iter().enumerate() {
        assert_eq!(sites.index_of_key(key), Some(index));
    }
    assert_eq!(sites.index_of_key("d!c.test/x"), None);
}

#[test]
fn a_request_for_a_host_with_another_certificate_than_the_connections_is_misdirected() {
    let with_certificate = |name: &str, hosts: &[&str], certificate: Option<&str>| {
        let fields = json!({ "hosts": hosts, "certificate": certificate });
        let mut site = with(http(name), &fields);
        if certificate.is_none() {
            site.as_object_mut().unwrap().remove("certificate");
        }
        site
    };
    let sites = sites(&[
        with_certificate("a", &["a.test", "*.a.test"], Some("one")),
        with_certificate("b", &["b.test"], Some("one")),
        with_certificate("c", &["c.test"], Some("two")),
        with_certificate("d", &["d.test"], None),
    ]);
    let over = |server_name: Option<&str>, authority| {
        let server_name = || server_name.map(|name| name.as_bytes().to_vec());
        let site = sites.find(&target("https", authority, "/"), server_name);
        site.map(|site| sites.sites[site].name())
    };
    assert_eq!(over(Some("a.test"), "a.test"), Ok("a"));
    assert_eq!(
        over(Some("x.A.test"), "b.test:8443"),
        Ok("b"),
        "one certificate"
    );
    assert_eq!(over(None, "c.test"), Ok("c"), "no name was sent");
    for (server_name, authority) in [
        ("a.test", "c.test"),
        ("c.test", "a.test"),
        ("a.test", "d.test"),
        ("d.test", "a.test"),
        ("unknown.test", "a.test"),
        ("a b", "a.test"),
    ] {
        let misdirected = Err(Rejection::Misdirected);
        assert_eq!(
            over(Some(server_name), authority),
            misdirected,
            "{server_name} {authority}"
        );
    }
}

#[test]
fn a_site_has_its_own_policy_and_shares_what_is_the_edges() {
    let sites = parse(&json!({
        "edge": { "limits": { "hints": 7 }, "coalesce": { "lease": "1s" }, "store": { "max_object_bytes": 9 } },
        "sites": [bucket("a"), with(http("b"), &json!({ "path": "/b" }))],
    }))
    .unwrap();
    for site in &sites.sites {
        assert_eq!(site.policy.edge.limits.hints, 7);
        assert_eq!(site.policy.edge.lease.as_secs(), 1);
        assert_eq!(site.policy.cache.max_object_bytes, 9);
    }
    assert!(sites.sites[0].policy.origin.is_bucket() && !sites.sites[1].policy.origin.is_bucket());
}

#[test]
fn a_policy_alone_is_that_of_one_site_which_takes_everything() {
    let sites = parse(&json!({ "origin": { "kind": "http" }, "limits": { "hints": 7 } })).unwrap();
    assert_eq!(found(&sites, "any.test", "/x"), Ok(""));
    assert_eq!(key(&sites, "any.test", "/x"), Ok("any.test/x".into()));
    assert_eq!(sites.edge.limits.hints, 7);
    assert_eq!(sites.index_of_key("any.test/x"), Some(0));
}

#[test]
fn what_is_wrong_is_named_with_the_site_the_field_and_what_is_accepted() {
    let first = || with(http("a"), &json!({ "hosts": ["a.test"] }));
    let second = |fields: Value| json!({ "sites": [first(), with(http("b"), &fields)] });
    for (document, expected) in [
        (
            json!({ "sites": [] }),
            "sites: a list without sites: expected at least one",
        ),
        (
            json!({ "sites": [{}] }),
            "sites[0].name: required, but missing",
        ),
        (
            second(json!({ "name": "B" })),
            "sites[1].name: \"B\": expected a name of 1 to 63 lower-case",
        ),
        (
            second(json!({ "name": "a" })),
            "sites[1].name: \"a\": expected a name that no other site has",
        ),
        (
            second(json!({ "hosts": ["b.test:80"] })),
            "sites[1].hosts[0]: \"b.test:80\": expected a host without",
        ),
        (
            second(json!({ "hosts": ["*"] })),
            "sites[1].hosts[0]: \"*\": expected a host without a port",
        ),
        (
            second(json!({ "hosts": ["A.test"] })),
            "sites[1].path: \"\": expected another path than that of the site a, which has a.test too",
        ),
        (
            second(json!({ "hosts": ["a.test"], "path": "/x", "certificate": "c" })),
            "sites[1].certificate: \"c\": expected the certificate of the site a, which has a.test too",
        ),
        (
            second(json!({ "path": "x" })),
            "sites[1].path: \"x\": expected whole segments of paths",
        ),
        (
            second(json!({ "path": "/x/../y" })),
            "sites[1].path: \"/x/../y\": expected whole segments",
        ),
        (
            second(json!({ "path": "/%78" })),
            "sites[1].path: \"/%78\": expected whole segments",
        ),
        (
            second(json!({ "share": 0 })),
            "sites[1].share: 0: expected a whole number from 1 to 1000",
        ),
        (
            second(json!({ "hsts": "a\nb" })),
            "sites[1].hsts: \"a\\nb\": expected visible ASCII",
        ),
        (
            second(json!({ "color": 1 })),
            "sites[1].color: unknown field, expected name, hosts, path",
        ),
        (
            second(json!({ "policy": { "origin": { "kind": "http" }, "hot": {} } })),
            "sites[1].policy.hot: belongs to the edge's part, which is one for all sites",
        ),
        (
            second(
                json!({ "policy": { "origin": { "kind": "http" }, "coalesce": { "lease": "1s" } } }),
            ),
            "sites[1].policy.coalesce.lease: belongs to the edge's part",
        ),
        (
            second(json!({ "policy": { "origin": { "kind": "http" }, "cache": { "ttl": 1 } } })),
            "sites[1].policy.cache.ttl: 1: expected",
        ),
        (
            json!({ "edge": { "cache": {} }, "sites": [first()] }),
            "edge.cache: no part of the edge's, expected store, hot, purge, limits, peers or coalesce.lease",
        ),
        (
            json!({ "edge": { "coalesce": { "max_wait": "1s" } }, "sites": [first()] }),
            "edge.coalesce.max_wait: belongs to the policy of a site",
        ),
        (
            json!({ "edge": { "limits": { "hints": 0 } }, "sites": [first()] }),
            "edge.limits.hints: 0: expected a whole number",
        ),
    ] {
        let error = parse(&document).unwrap_err();
        assert!(error.starts_with(expected), "{error}\nexpected {expected}");
    }
    let mut hosted = bucket("b");
    hosted["policy"]["key"] = json!({ "host": true });
    let error = parse(&json!({ "sites": [hosted] })).unwrap_err();
    assert!(
        error
            .starts_with("sites[0].policy.key.host: true: expected false for the bucket of a site")
    );
    let token = json!({ "purge_token_sha256": "0".repeat(64) });
    let twins = json!({ "sites": [with(first(), &token), with(http("b"), &token)] });
    let error = parse(&twins).unwrap_err();
    assert_eq!(
        error,
        "sites[1].purge_token_sha256: expected a token that nothing else has"
    );
}

#[test]
fn the_one_site_of_an_edge_may_ask_for_https_beside_its_policy() {
    let read = |text: &str| Sites::parse(text.as_bytes()).map(|sites| sites.sites[0].clone());
    let plain = read(r#"{"origin": {"kind": "http"}}"#).unwrap();
    assert_eq!((plain.redirect_to_https, plain.hsts), (false, None));
    let secure =
        r#"{"origin": {"kind": "http"}, "https": {"redirect": true, "hsts": "max-age=9"}}"#;
    let secure = read(secure).unwrap();
    assert_eq!(
        (secure.redirect_to_https, secure.hsts.as_deref()),
        (true, Some("max-age=9"))
    );
    let wrong = read(r#"{"origin": {"kind": "http"}, "https": {"hsts": "a\nb"}}"#);
    let wrong = wrong.unwrap_err().to_string();
    assert!(
        wrong.starts_with("https.hsts: \"a\\nb\": expected visible ASCII"),
        "{wrong}"
    );
}
