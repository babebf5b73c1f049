// SPDX-License-Identifier: Apache-2.0
//! An edge with a hot tier answers every request as an edge without one does, field by field, under any policy.

use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::origin::{Origin, Reply};

const LONG: u32 = 3_600;
const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const SITE: &str = "https://a.test";
type Fields<'a> = &'a [(&'a str, &'a str)];

/// An edge with a hot tier and an edge without one. Both get the same requests.
struct Pair {
    hot: Client,
    stored: Client,
    _edges: [Edge; 2],
}

impl Pair {
    /// Starts the edges with one worker each, so that all requests of a test use one memory.
    async fn start(builder: Builder) -> Self {
        let builder = builder.workers(1);
        let with = builder.clone().start().await;
        let without = builder.env("SLUICE_HOT_BYTES", "0").start().await;
        Self {
            hot: Client::connect(with.address()).await,
            stored: Client::connect(without.address()).await,
            _edges: [with, without],
        }
    }

    /// Requests `path` with these fields until the first edge has a hot copy and the second one has stored it.
    async fn heat(&mut self, path: &str, fields: Fields<'_>) {
        self.hot.heat(path, fields).await;
        let asked = request("GET", path, fields);
        while !self.stored.exchange(&asked).await.is_hit() {}
    }

    /// Sends the request to both edges, checks that the responses are the same, and returns whether the first was
    /// hot.
    async fn ask(&mut self, method: &str, path: &str, fields: Fields<'_>) -> bool {
        let asked = format!("{method} {path} {fields:?}");
        let bytes = request(method, path, fields);
        let with = self.hot.exchange(&bytes).await;
        let without = self.stored.exchange(&bytes).await;
        assert!(!without.is_hot(), "{asked}: {without}");
        assert_eq!(with.status, without.status, "{asked}: {with}, {without}");
        let hot = with.is_hot();
        let mut apart = vec!["transfer-encoding"];
        // A stored response that is being compressed has no `Content-Length`. Its hot copy has one.
        let announced = |response: &Response| response.headers.get("content-length").is_some();
        if !(announced(&with) && announced(&without)) {
            apart.push("content-length");
        }
        // One edge may have stored the object earlier than the other.
        if !hot {
            apart.extend(["age", "cache-status"]);
        }
        assert_eq!(
            fields_of(&with, &apart),
            fields_of(&without, &apart),
            "{asked}"
        );
        assert!(with.body == without.body, "{asked}: {with}, {without}");
        hot
    }
}

/// Sends each variant by GET and HEAD, with each demand, and checks that every response is hot and the same.
async fn ask_all(pair: &mut Pair, variants: &[(&str, Fields<'_>)]) {
    for (path, fields) in variants {
        pair.heat(path, fields).await;
    }
    for (path, variant) in variants {
        for demand in DEMANDS {
            let fields = [*variant, demand].concat();
            for method in ["GET", "HEAD"] {
                let mut hot = pair.ask(method, path, &fields).await;
                if !hot {
                    // The worker reads a hot object from the store now and then.
                    pair.heat(path, variant).await;
                    hot = pair.ask(method, path, &fields).await;
                }
                assert!(hot, "{method} {path} {fields:?} is not hot");
            }
        }
    }
}

/// All fields except those in `apart`, ready to be compared: without the values that depend on the time, and
/// `Cache-Status` without the place in the edge that served the response.
fn fields_of(response: &Response, apart: &[&str]) -> Vec<(String, String)> {
    let told = |name: &str, value: &str| match name {
        "age" | "date" => String::new(),
        "x-origin-sequence" => String::new(),
        "cache-status" => {
            let parts = value.split("; ").filter(|part| *part != "detail=hot");
            let timeless = parts.map(|part| part.split_once("ttl=").map_or(part, |_| "ttl"));
            timeless.collect::<Vec<_>>().join("; ")
        }
        _ => value.to_owned(),
    };
    let all = response.headers.0.iter();
    let mut fields: Vec<_> = all
        .filter(|(name, _)| !apart.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), told(name, value)))
        .collect();
    fields.sort();
    fields
}

/// A text that is worth compressing.
fn text() -> Reply {
    let reply = Reply::text("what it says ".repeat(1_000)).max_age(LONG);
    reply
        .etag("v1")
        .header("content-type", "text/plain")
        .header("last-modified", MODIFIED)
}

const POLICY: &str = "
origin: {kind: http}
request: {cache_control: obey}
cache: {set_cookie: strip}
compression: {enabled: true}
response: {remove_headers: [x-secret]}
website: {cors: {allowed_origins: ['https://a.test'], exposed_headers: [etag]}}
rules:
- {match: ['/ruled'], client_cache_control: 'public, max-age=60', headers: {x-frame-options: DENY}}
";

#[tokio::test]
async fn an_http_origins_objects_are_the_same_hot_or_stored() {
    let origin = Origin::start().ready().await;
    let cookie = text().header("set-cookie", "a=b").header("x-secret", "1");
    let tagged = cookie
        .header("surrogate-key", "one two")
        .header("surrogate-control", "max-age=600")
        .header("link", "</a>")
        .header("link", "</b>");
    origin
        .on("/text", text())
        .on("/ruled", text())
        .on("/tagged", tagged)
        .on("/vary", text().header("vary", "accept-language"))
        .on("/bytes", Reply::text(vec![7; 5_000]).max_age(LONG))
        .on("/missing", Reply::status(404).empty().max_age(LONG));
    let mut pair = Pair::start(Edge::http(&origin).policy(POLICY)).await;
    ask_all(&mut pair, &HTTP_VARIANTS).await;
    // The store or the edge itself answers these requests.
    for (method, fields) in [
        ("GET", &[("cache-control", "max-age=0")][..]),
        ("GET", &[("cache-control", "max-stale=9")]),
        ("GET", &[("cache-control", "min-fresh=10")]),
        ("GET", &[("cache-control", "only-if-cached")]),
        ("GET", &[("cache-control", "no-store")]),
        ("GET", &[("authorization", "Basic YTpi")]),
        ("GET", &[("cookie", "a=b")]),
        (
            "OPTIONS",
            &[("origin", SITE), ("access-control-request-method", "PUT")],
        ),
        ("GET", &[("pragma", "no-cache")]),
    ] {
        let hot = pair.ask(method, "/text", fields).await;
        assert!(!hot, "{method} {fields:?}");
    }
    for _ in 0..4 {
        assert!(!pair.ask("GET", "/missing", &[]).await);
    }
}

/// Requests that select different responses, or add different fields to a response.
const HTTP_VARIANTS: [(&str, Fields<'static>); 11] = [
    ("/text", &[]),
    ("/text", &[("accept-encoding", "gzip")]),
    ("/text", &[("accept-encoding", "br;q=1, gzip;q=0.1")]),
    ("/text", &[("origin", SITE)]),
    ("/text", &[("origin", "https://evil.test")]),
    ("/ruled", &[]),
    ("/ruled", &[("accept-encoding", "gzip"), ("origin", SITE)]),
    ("/tagged", &[]),
    ("/vary", &[("accept-language", "en")]),
    ("/vary", &[("accept-language", "de")]),
    ("/bytes", &[]),
];

const DEMANDS: [Fields<'static>; 14] = [
    &[],
    &[("if-none-match", "\"v1\"")],
    &[("if-none-match", "W/\"v1\"")],
    &[("if-none-match", "*")],
    &[("if-none-match", "\"v0\"")],
    &[("if-modified-since", MODIFIED)],
    &[("if-modified-since", "Sat, 05 Nov 1994 08:49:37 GMT")],
    &[("if-match", "\"v0\"")],
    &[("if-unmodified-since", "Sat, 05 Nov 1994 08:49:37 GMT")],
    &[("range", "bytes=0-9")],
    &[("range", "bytes=-5")],
    &[("range", "bytes=99999-")],
    &[("range", "bytes=3-"), ("if-range", "\"v1\"")],
    &[("range", "bytes=3-"), ("if-range", MODIFIED)],
];

const BUCKET_POLICY: &str = "
origin: {kind: bucket}
key: {index_document: index.html}
compression: {enabled: true}
website:
  error_document: error.html
  guess_content_type: true
  redirect_directories: true
";

#[tokio::test]
async fn a_buckets_objects_are_the_same_hot_or_stored() {
    let origin = Origin::start().ready().await;
    let object = text()
        .header("x-amz-request-id", "1")
        .header("server", "S3");
    let untyped = Reply::text("let a = 1;".repeat(300)).max_age(LONG);
    origin
        .on("/site/index.html", object.clone())
        .on("/site/dir/index.html", object.clone())
        .on("/site/a.txt", object.clone())
        .on("/site/a.js", untyped.etag("v1"))
        .on("/site/error.html", object)
        .on("/site/none*", Reply::status(404))
        .on("/site/dir", Reply::status(404));
    let edge = Edge::scripted_bucket(&origin);
    let mut pair = Pair::start(edge.policy(BUCKET_POLICY)).await;
    ask_all(&mut pair, &BUCKET_VARIANTS).await;
    // Redirects and error documents are the same as without a hot tier.
    for path in ["/dir", "/none", "/none"] {
        assert!(!pair.ask("GET", path, &[]).await, "{path}");
    }
}

const BUCKET_VARIANTS: [(&str, Fields<'static>); 6] = [
    ("/", &[]),
    ("/index.html", &[("accept-encoding", "gzip")]),
    ("/dir/?x=1", &[]),
    ("/a.txt?acl", &[]),
    ("/a.js", &[]),
    ("/a.js", &[("accept-encoding", "zstd")]),
];

#[tokio::test]
async fn a_stale_object_is_refreshed_by_both_edges_and_hot_again_after_that() {
    let origin = Origin::start().ready().await;
    let brief = "max-age=2, stale-while-revalidate=600";
    let reply = Reply::text("short-lived").header("cache-control", brief);
    origin.on("/a", reply.etag("v1"));
    let mut pair = Pair::start(Edge::http(&origin)).await;
    pair.heat("/a", &[]).await;
    let fetched = origin.count("/a");
    let mut stale = None;
    while stale.is_none() {
        let answer = pair.hot.get("/a").await;
        assert_eq!(answer.status, 200, "{answer}");
        stale = (!answer.is_hot()).then_some(answer);
        let _ = pair.stored.get("/a").await;
    }
    assert!(stale.is_some_and(|answer| answer.is_hit()));
    pair.heat("/a", &[]).await;
    assert!(origin.count("/a") > fetched, "no request to the origin");
}
