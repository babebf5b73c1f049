// SPDX-License-Identifier: Apache-2.0
//! Even if the filter fails, no request that it has not checked reaches the cache or the origin.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;

use support::edge::{Edge, Variables, runs};
use support::modules::{APPROVING, DEAD, REWRITING, TRAPPING};
use support::origin::Origin;
use support::{exchange, exchange_on, free_port, get, status};

fn bucket(origin: &Origin, module: &str) -> Variables {
    Variables::new("s3://site/a.b", module)
        .set("SLUICE_S3_ENDPOINT", &origin.url())
        .set("AWS_ACCESS_KEY_ID", "key")
        .set("AWS_SECRET_ACCESS_KEY", "secret")
}

#[test]
fn nothing_is_signed_or_sent_that_a_working_filter_has_not_approved() {
    let origin = Origin::start();
    let http = Variables::new(&origin.url(), DEAD).start();
    let bucket = bucket(&origin, DEAD).start();
    // A client cannot approve its own request, through the cache (GET) or around it.
    let claim = "x-sluice-proof: 1\r\n";
    for request in ["GET /site/a.b/x", "HEAD /site/a.b/x", "OPTIONS /site/a.b/x"] {
        assert_eq!(
            status(&exchange(bucket.port, request, claim)),
            403,
            "{request}"
        );
    }
    for request in ["GET /x", "POST /x", "DELETE /..%2fother/x?acl"] {
        assert_eq!(
            status(&exchange(http.port, request, claim)),
            403,
            "{request}"
        );
    }
    assert_eq!(
        status(&exchange(
            bucket.port,
            "GET /site/a.b/x",
            "if-range: \"sluice-bypass\"\r\n"
        )),
        403
    );
    assert_eq!(origin.requests(), [""; 0]);
}

#[test]
fn a_filter_that_dies_on_the_way_to_the_origin_costs_answers_and_nothing_else() {
    let origin = Origin::start();
    let edge = bucket(&origin, TRAPPING).start();
    let envoy = edge.envoy();
    for number in 0..100 {
        let answer = get(edge.port, &format!("/site/a.b/{number}"));
        assert!(matches!(status(&answer), 403 | 500 | 503), "{answer}");
    }
    assert_eq!(edge.envoy(), envoy);
    assert!(runs(envoy));
    assert!(
        edge.log().contains("unreachable"),
        "it has not died even once"
    );
    assert_eq!(origin.requests(), [""; 0]);
}

#[test]
fn an_origin_that_is_nowhere_to_be_found_is_answered_for() {
    let edge = Variables::new("http://no-such-host.invalid", APPROVING).start();
    let envoy = edge.envoy();
    for number in 0..20 {
        assert_eq!(status(&get(edge.port, &format!("/{number}"))), 503);
    }
    assert!(runs(envoy));
}

#[test]
fn what_the_filter_approves_is_signed_and_sent_without_a_trace_of_the_inside() {
    let origin = Origin::start();
    let edge = bucket(&origin, APPROVING).start();
    let answer = exchange(
        edge.port,
        "GET /site/a.b/x",
        "x-forwarded-for: 192.0.2.1\r\nx-envoy-force-trace: 1\r\n",
    );
    assert_eq!(status(&answer), 200, "{answer}");
    let requests = origin.requests();
    let [request] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    assert!(
        request.starts_with("GET /site/a.b/x HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.contains("\r\nauthorization: AWS4-HMAC-SHA256 Credential=key/"),
        "{request}"
    );
    assert!(
        request.contains(&format!(
            "\r\nhost: {}\r\n",
            origin.url().trim_start_matches("http://")
        )),
        "{request}"
    );
    for inside in ["x-sluice-", "x-envoy-", "x-forwarded-"] {
        assert!(!request.contains(inside), "{request}");
    }
}

#[test]
fn only_canonical_paths_of_the_bucket_are_signed_and_sent() {
    let origin = Origin::start();
    let edge = bucket(&origin, APPROVING).start();
    for (request, passes) in [
        ("GET /site/a.b/x", true),
        ("GET /site/a.b/", true),
        ("GET /site/a.b/%C3%BC/..x/x..", true),
        ("HEAD /site/a.b/x", true),
        ("OPTIONS /site/a.b/x", true),
        ("PUT /site/a.b/x", false),
        ("POST /site/a.b/x", false),
        ("DELETE /site/a.b/x", false),
        ("GET /", false),
        ("GET /other/a.b/x", false),
        ("GET /site/x", false),
        ("GET /site/axb/x", false),
        ("GET /site/a.bc", false),
        ("GET /x/site/a.b/x", false),
        ("GET /site/a.b/../x", false),
        ("GET /site/a.b/./x", false),
        ("GET /site/a.b/..", false),
        ("GET /site/a.b/%2E%2E/x", false),
        ("GET /site/a.b/%2e%2e/x", false),
        ("GET /site/a.b/x%2Fy", false),
        ("GET /site/a.b/x%00", false),
        ("GET /site/a.b/x+y", false),
        ("GET /site/a.b/x?acl", false),
        ("GET /site/a.b/x;/../y", false),
        ("GET /site/a.b/x\\y", false),
    ] {
        // The request bypasses the cache, so that each one reaches the origin.
        let before = origin.requests().len();
        let answer = exchange(edge.port, request, "if-range: \"sluice-bypass\"\r\n");
        assert_eq!(
            status(&answer),
            if passes { 200 } else { 403 },
            "{request}: {answer}"
        );
        assert_eq!(
            origin.requests().len() - before,
            usize::from(passes),
            "{request}"
        );
    }
}

#[test]
fn a_path_on_which_the_filter_has_left_qualifiers_of_a_key_is_not_sent() {
    let origin = Origin::start();
    let edge = bucket(&origin, REWRITING).start();
    for path in [
        "/site/a.b/x#ae=br",
        "/site/a.b/x#g=1;v-a=%2F..%2E/../b?c",
        "/site/a.b/x#g=1#g=2",
        "/site/other#/site/a.b/x",
        "/site#/a.b/x",
    ] {
        let answer = exchange(edge.port, "GET /", &format!("x-path: {path}\r\n"));
        let refused = "x-sluice-origin-failed: path_normalization_failed";
        assert!(answer.contains(refused), "{path}: {answer}");
    }
    // A client cannot set this header itself.
    assert_eq!(status(&get(edge.port, "/site/a.b/x#g=1")), 400);
    assert_eq!(origin.requests(), [""; 0]);
}

#[test]
fn only_questions_for_listings_below_the_listed_prefixes_are_signed_and_sent() {
    let origin = Origin::start();
    let variables = bucket(&origin, APPROVING);
    let policy = variables.folder().join("policy.yaml");
    let text = "key: {index_document: index.html}\nwebsite: {listing: {prefixes: [/pub/*, /x.y/*], page: 3}}\n";
    std::fs::write(&policy, text).unwrap();
    let edge = variables
        .set("SLUICE_POLICY", policy.to_str().unwrap())
        .start();
    let question = "/site/?delimiter=%2F&list-type=2&max-keys=3&prefix=a.b%2Fpub%2F";
    let of = |rest: &str| question.replace("pub%2F", rest);
    for (path, passes) in [
        (question.to_owned(), true),
        (of("pub%2Fd%2F"), true),
        (of("x.y%2F&start-after=a.b%2Fx.y%2Fz"), true),
        (of("pub%2F&start-after=a.b%2Fpub%2Fz%F4%8F%BF%BF"), true),
        ("/site/a.b/pub/x".to_owned(), true),
        (of(""), false),
        (of("pub"), false),
        (of("other%2F"), false),
        (of("xzy%2F"), false),
        (of("pub%2F&acl"), false),
        (of("pub%2F&start-after="), false),
        (of("pub%2F&start-after=x&versions"), false),
        (of("pub/"), false),
        (question.replace("max-keys=3", "max-keys=1000"), false),
        (question.replace("delimiter=%2F&", ""), false),
        (question.replace("list-type=2", "list-type=1"), false),
        (question.replace("/site/", "/site/a.b/"), false),
        (question.replace("/site/", "/other/"), false),
        (question.replace("/site/", "/"), false),
        (question.replace("a.b", "acb"), false),
        (format!("{question}#"), false),
    ] {
        let before = origin.requests().len();
        let request = format!("GET {path}");
        let answer = exchange(edge.port, &request, "if-range: \"sluice-bypass\"\r\n");
        assert_eq!(status(&answer) == 200, passes, "{path}: {answer}");
        let sent = origin.requests().len() - before;
        assert_eq!(sent, usize::from(passes), "{path}");
    }
}

#[test]
fn a_bucket_policys_query_parameters_are_sent() {
    let origin = Origin::start();
    let variables = bucket(&origin, APPROVING);
    let policy = variables.folder().join("policy.yaml");
    std::fs::write(&policy, "key: {query: {allow: [v]}}\n").unwrap();
    let edge = variables
        .set("SLUICE_POLICY", policy.to_str().unwrap())
        .start();
    assert_eq!(status(&get(edge.port, "/site/a.b/x?v=%2F../")), 200);
    for path in ["/site/a.b/../x?v=1", "/site/a.b/..?v=1"] {
        assert_eq!(status(&get(edge.port, path)), 403, "{path}");
    }
    assert_eq!(origin.requests().len(), 1);
}

/// An edge in front of a bucket, which reads the purge feed, and writes it or not.
fn feeding(origin: &Origin, writes: &str) -> Variables {
    let edge = bucket(origin, APPROVING);
    let policy = edge.folder().join("policy.yaml");
    let text = "origin: {kind: bucket}\npurge: {feed: {every: 1h}}\n";
    std::fs::write(&policy, text).unwrap();
    edge.set("SLUICE_POLICY", policy.to_str().unwrap())
        .set("SLUICE_PURGE_TOKEN", "0123456789abcdef")
        .set("SLUICE_PURGE_PORT", &free_port().to_string())
        .set("SLUICE_PURGE_FEED_WRITE", writes)
}

#[test]
fn the_way_to_the_feed_passes_two_methods_of_one_path_and_is_there_only_if_it_is_asked_for() {
    let origin = Origin::start();
    let edge = feeding(&origin, "on").start();
    let socket = |edge: &Edge| {
        let state = edge.folder().join("state");
        state.join(format!("fed-{}.sock", edge.port))
    };
    let mode = std::fs::metadata(socket(&edge))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    for (request, passes) in [
        ("GET /.sluice/purges", true),
        ("PUT /.sluice/purges", true),
        ("HEAD /.sluice/purges", false),
        ("POST /.sluice/purges", false),
        ("DELETE /.sluice/purges", false),
        ("PUT /.sluice/purges?acl", false),
        ("PUT /.sluice/purges/", false),
        ("PUT /.sluice/other", false),
        ("PUT /site/a.b/.sluice/purges", false),
        ("PUT /site/a.b/x", false),
        ("PUT /.sluice/../x", false),
    ] {
        let before = origin.requests().len();
        let way = UnixStream::connect(socket(&edge)).unwrap();
        let answer = exchange_on(way, request, "if-match: \"1\"\r\ncontent-length: 0\r\n");
        let sent = origin.requests().split_off(before);
        assert_eq!(status(&answer), if passes { 200 } else { 404 }, "{request}");
        assert_eq!(sent.len(), usize::from(passes), "{request}: {sent:?}");
        if let [sent] = sent.as_slice() {
            let method = request.split(' ').next().unwrap();
            let line = format!("{method} /site/a.b/.sluice/purges HTTP/1.1\r\n");
            assert!(sent.starts_with(&line), "{sent}");
            assert!(sent.contains("\r\nif-match: \"1\"\r\n"), "{sent}");
            assert!(
                sent.contains("authorization: AWS4-HMAC-SHA256 Credential=key/"),
                "{sent}"
            );
            for inside in ["x-sluice-", "x-envoy-", "x-forwarded-"] {
                assert!(!sent.contains(inside), "{sent}");
            }
        }
    }
    // Not even a filter that approves every request lets a client write.
    let before = origin.requests().len();
    for path in ["/.sluice/purges", "/site/a.b/.sluice/purges"] {
        let answer = exchange(edge.port, &format!("PUT {path}"), "content-length: 0\r\n");
        assert_eq!(status(&answer), 403, "{path}");
    }
    assert_eq!(origin.requests().len(), before);
    let edge = feeding(&origin, "off").start();
    assert!(!socket(&edge).exists());
}
