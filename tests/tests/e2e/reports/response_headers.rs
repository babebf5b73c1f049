// SPDX-License-Identifier: Apache-2.0
//! Responses with very many header lines, or very large ones: `envoy#13827`, `istio#52006`. Each part of the path
//! accepts every response that the previous part has let through.

use serde_json::{Value, json};
use sluice_tests::bare::Bare;
use sluice_tests::bucket::Bucket;
use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::request;
use sluice_tests::client::{Client, Failure, Response};
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::{Medium, Store};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use test_case::test_case;

/// Lines that the edge accepts in an origin's response.
const LINES: usize = 200;
/// Bytes of headers that the edge accepts in an origin's response.
const BYTES: usize = 96 << 10;
/// Lines of each response of the test's origin: its number, `Date`, `Content-Length`.
const OWN_LINES: usize = 3;
/// More than the bytes of these lines, of the first line, and of the lines that the tests add.
const OWN_BYTES: usize = 300;

/// A response with `lines` header lines, which is fresh for a minute.
fn of_lines(lines: usize) -> Reply {
    let more = lines - OWN_LINES - 1;
    (0..more).fold(Reply::ok(100).max_age(60), |reply, line| {
        reply.header(&format!("x-line-{line}"), "1")
    })
}

/// A response with a header of nearly `bytes` bytes.
fn of_bytes(name: &str, value: &str, bytes: usize) -> Reply {
    let padding = "a".repeat(bytes - OWN_BYTES - value.len());
    let value = value.replace('_', &padding);
    Reply::ok(100).max_age(60).header(name, &value)
}

/// Requests a cold object, its headers, and the stored object in each way. Asserts that all fields arrive each time.
async fn is_stored(edge: &mut Edge, origin: &Origin, path: &str, what: &str) {
    let first = edge.get(path).await;
    assert_eq!(first.status, 200, "{what}: {:?}", first.cache_status());
    let fields = first.stored_fields();
    for ask in 0..4 {
        let again = edge.get(path).await;
        assert_eq!(
            again.status,
            200,
            "{what}, {ask}: {:?}",
            again.cache_status()
        );
        assert!(again.is_reused(), "{what}, {ask}: {}", again.cache_status());
        assert_eq!(again.stored_fields(), fields, "{what}, {ask}");
    }
    let head = edge.send("HEAD", path, &[]).await;
    assert_eq!(head.status, 200, "{what}, HEAD");
    let part = edge.send("GET", path, &[("range", "bytes=0-9")]).await;
    assert_eq!(part.status, 206, "{what}, a range");
    assert_eq!(origin.count(path), 1, "{what}");
    assert!(edge.alive(), "{what}");
}

#[test_case(Medium::Disk; "on disk")]
#[test_case(Medium::Memory; "in memory")]
#[tokio::test]
async fn responses_up_to_the_bounds_are_stored_and_served_whole(medium: Medium) {
    let origin = Origin::start().ready().await;
    // NB: a worker that does not know the object asks the origin for its size before it serves a range.
    let edge = Edge::http(&origin).medium(medium).workers(1);
    let mut edge = edge.start().await;
    for lines in [
        60,
        90,
        91,
        92,
        93,
        95,
        97,
        99,
        100,
        101,
        102,
        150,
        LINES - 1,
        LINES,
    ] {
        let path = format!("/lines/{lines}");
        origin.on(&path, of_lines(lines));
        is_stored(&mut edge, &origin, &path, &path).await;
    }
    for kib in [40, 58, 59, 60, 61, 62, 64, 78, 79, 80, 81, 90, 95, 96] {
        let path = format!("/bytes/{kib}");
        origin.on(&path, of_bytes("x-large", "_", kib << 10));
        is_stored(&mut edge, &origin, &path, &path).await;
    }
}

/// Fields that the filter reads, copies or changes, with a place for padding.
#[test_case("cache-control", "max-age=60, x=_"; "a cache control")]
#[test_case("vary", "x-_"; "a vary")]
#[test_case("etag", "\"_\""; "an entity tag")]
#[test_case("set-cookie", "a=_"; "a cookie")]
#[test_case("surrogate-key", "_"; "a surrogate key")]
#[test_case("surrogate-control", "max-age=60, x=_"; "a surrogate control")]
#[test_case("content-type", "text/html; x=_"; "a media type")]
#[test_case("content-disposition", "attachment; filename=_"; "a file name")]
#[test_case("connection", "x-_"; "options of the connection")]
#[test_case("location", "/_"; "a place")]
#[test_case("last-modified", "_"; "a date that is none")]
#[tokio::test]
async fn no_field_of_96_kib_ends_the_edge(name: &str, value: &str) {
    let origin = Origin::start().ready().await;
    let mut edge = Edge::http(&origin).start().await;
    for kib in [30, 59, 80, 95] {
        let path = format!("/{kib}");
        origin.on(&path, of_bytes(name, value, kib << 10));
        for ask in 0..4 {
            let response = edge.get(&path).await;
            assert_eq!(response.status, 200, "{name}, {kib} KiB, {ask}");
        }
        assert!(edge.alive(), "{name}, {kib} KiB");
    }
}

/// The response has followers, for which the filter queries the store with its own calls.
#[tokio::test]
async fn a_crowd_shares_a_response_at_the_bounds() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).start().await;
    origin.on("/lines", of_lines(LINES));
    origin.on("/bytes", of_bytes("x-large", "_", BYTES));
    for path in ["/lines", "/bytes"] {
        let crowd = Crowd::connect(edge.address(), 40).await;
        let outcomes = crowd.fire(path).land().await.0;
        let status = |outcome: &Result<Response, Failure>| {
            outcome.as_ref().map_or(0, |response| response.status)
        };
        assert!(
            outcomes.iter().all(|outcome| status(outcome) == 200),
            "{outcomes:?}"
        );
        assert_eq!(origin.count(path), 1, "{path}");
    }
}

#[test_case(&of_lines(LINES + 20); "too many lines")]
#[test_case(&of_lines(1_000); "very many lines")]
#[test_case(&of_lines(5_000); "thousands of lines")]
#[test_case(&of_bytes("x-large", "_", BYTES + 1_000); "too many bytes")]
#[test_case(&of_bytes("x-large", "_", 200_000); "very many bytes")]
#[test_case(&of_bytes("x-large", "_", 2_000_000); "millions of bytes")]
#[tokio::test]
async fn a_response_beyond_the_bounds_is_502_with_the_reason_and_never_stored(reply: &Reply) {
    let origin = Origin::start().ready().await;
    let mut edge = Edge::http(&origin)
        .allow_log("no answer from the origin")
        .start()
        .await;
    origin.on_each("/a", [reply.clone(), reply.clone(), of_lines(LINES)]);
    for _ in 0..2 {
        let refused = edge.get("/a").await;
        assert_eq!(refused.status, 502, "{refused}");
        let status = refused.cache_status();
        assert!(status.contains("detail=response-headers"), "{status}");
        assert!(!status.contains("stored"), "{status}");
        let says = String::from_utf8_lossy(&refused.body);
        assert!(says.contains("headers"), "{says}");
    }
    // The origin works again.
    assert_eq!(edge.get("/a").await.status, 200);
    assert_eq!(origin.count("/a"), 3);
    assert!(edge.get("/a").await.is_reused());
    assert!(edge.alive());
}

/// The bounds also hold for responses that are passed around the store.
#[tokio::test]
async fn a_response_beyond_the_bounds_to_a_request_that_passes_is_502() {
    let origin = Origin::start().ready().await;
    let mut edge = Edge::http(&origin)
        .allow_log("no answer from the origin")
        .start()
        .await;
    origin.on("/lines", of_lines(LINES + 20));
    origin.on("/bytes", of_bytes("x-large", "_", BYTES + 1_000));
    for path in ["/lines", "/bytes"] {
        let refused = edge.send("POST", path, &[("content-length", "0")]).await;
        assert_eq!(refused.status, 502, "{path}: {refused}");
        let says = String::from_utf8_lossy(&refused.body);
        assert!(says.contains("headers"), "{says}");
    }
    assert!(edge.alive());
}

/// A stored response is served if the origin's response is refused.
#[tokio::test]
async fn a_stale_response_takes_the_place_of_one_beyond_the_bounds() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin)
        .allow_log("no answer from the origin")
        .policy("origin: {kind: http}\ncache: {stale_if_error: 60s}\n")
        .start()
        .await;
    let stored = Reply::ok(100)
        .header("cache-control", "max-age=1")
        .etag("a");
    origin.on_each("/a", [stored, of_lines(LINES + 20)]);
    let first = edge.get("/a").await;
    eventually("a stale response", async || {
        let response = edge.get("/a").await;
        assert_eq!(response.body, first.body, "{response}");
        response.cache_status().contains("fwd=stale")
    })
    .await;
}

/// S3 limits metadata to 2 KB, but does not limit the number of entries.
#[tokio::test]
async fn an_object_with_105_entries_of_metadata_is_served() {
    let bucket = Bucket::new().await;
    let names: Vec<_> = (0..105)
        .map(|entry| format!("x-amz-meta-k{entry}"))
        .collect();
    let metadata: Vec<_> = names.iter().map(|name| (name.as_str(), "v")).collect();
    bucket.put("a.png", &metadata, b"x").await;
    let mut edge = Edge::bucket(&bucket).start().await;
    for _ in 0..4 {
        let response = edge.get("/a.png").await;
        assert_eq!(response.status, 200, "{response}");
        assert_eq!(response.body, b"x");
    }
    assert_eq!(bucket.count("a.png"), 1);
    assert!(edge.alive());
}

/// The filter chain of a bucket has additional filters.
#[tokio::test]
async fn a_buckets_objects_up_to_the_bounds_are_stored_and_served_whole() {
    let origin = Origin::start().ready().await;
    let mut edge = Edge::scripted_bucket(&origin).start().await;
    let lines = [99, 105, 150, LINES].map(|lines| (lines, of_lines(lines)));
    let bytes = [61, 81, 96].map(|kib| (kib, of_bytes("x-large", "_", kib << 10)));
    for (number, reply) in lines.into_iter().chain(bytes) {
        let path = format!("/{number}.png");
        origin.on(&format!("/site{path}"), reply);
        for ask in 0..4 {
            let response = edge.get(&path).await;
            assert_eq!(
                response.status,
                200,
                "{number}, {ask}: {:?}",
                response.cache_status()
            );
        }
        assert_eq!(origin.count(&format!("/site{path}")), 1, "{number}");
    }
    assert!(edge.alive());
}

/// No client gets trailers of the origin, whatever their number. A response with too many bytes of them is not stored.
#[tokio::test]
async fn trailers_of_any_size_do_no_harm() {
    let origin = Origin::start().ready().await;
    let mut edge = Edge::http(&origin).start().await;
    for (lines, bytes) in [(90, 1), (110, 1), (250, 1), (5_000, 1), (1, 90_000)] {
        let path = format!("/{lines}-{bytes}");
        let value = "a".repeat(bytes);
        let reply = (0..lines).fold(Reply::ok(100).max_age(60), |reply, line| {
            reply.trailer(&format!("x-trailer-{line}"), &value)
        });
        origin.on(&path, reply);
        for ask in 0..3 {
            let response = edge.get(&path).await;
            assert_eq!(response.status, 200, "{path}, {ask}: {response}");
            let _ = response.stamp(&path);
        }
    }
    let value = "a".repeat(300_000);
    let cut = Reply::ok(100).max_age(60).trailer("x-trailer", &value);
    origin.on("/cut", cut);
    for _ in 0..3 {
        let mut client = Client::connect(edge.address()).await;
        let outcome = client.try_exchange(request("GET", "/cut", &[])).await;
        assert!(
            matches!(outcome, Err(Failure::Truncated(..))),
            "{outcome:?}"
        );
    }
    assert!(origin.count("/cut") >= 3);
    assert!(edge.alive());
}

/// A crash of Envoy: a filter calls through an internal listener, the HTTP/2 codec refuses the response, and the
/// filter makes another call at once.
#[tokio::test]
async fn control_bare_envoy_dies_of_a_hit_with_more_headers_than_a_call_may_get() {
    let origin = Origin::start().ready().await;
    origin.on("/a", of_lines(120));
    let mut bare = Bare::changed(&origin, Store::V1_DISK, 1, &calls_through_the_cache).await;
    eventually("a hit", async || {
        bare.get("/a").await.headers.get("age").is_some()
    })
    .await;
    let mut client = Client::connect(bare.address()).await;
    let sent = client.send(request("GET", "/a", &[("x-call", "1")])).await;
    let _ = client.response().await;
    sent.unwrap();
    eventually("the end of bare Envoy", async || !bare.alive()).await;
    assert!(bare.log().contains("Segmentation fault"), "{}", bare.log());
}

/// Adds an internal listener with the same cache, and makes a request with `X-Call` cause two calls through it.
fn calls_through_the_cache(config: &mut Value) {
    let resources = &mut config["static_resources"];
    let chains = resources["listeners"][0]["filter_chains"].clone();
    let inner = json!({"name": "inner", "internal_listener": {}, "filter_chains": chains});
    let listeners = resources["listeners"].as_array_mut().unwrap();
    listeners.push(inner);
    let endpoint = json!({"endpoint": {"address": {"envoy_internal_address": {"server_listener_name": "inner"}}}});
    let protocol = json!({
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    });
    let cluster = json!({
        "name": "inner",
        "load_assignment": {"cluster_name": "inner", "endpoints": [{"lb_endpoints": [endpoint]}]},
        "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": protocol},
    });
    resources["clusters"].as_array_mut().unwrap().push(cluster);
    let code = r#"
        function envoy_on_request(request)
          local headers = request:headers()
          if headers:get("x-call") then
            local call = {
              [":method"] = "GET", [":path"] = headers:get(":path"), [":authority"] = headers:get(":authority")
            }
            request:httpCall("inner", call, nil, 1000)
            request:httpCall("inner", call, nil, 1000)
            request:respond({[":status"] = "200"}, "")
          end
        end"#;
    let lua = json!({
        "name": "calls",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
            "default_source_code": {"inline_string": code},
        },
    });
    let manager = &mut config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0];
    let filters = manager["typed_config"]["http_filters"]
        .as_array_mut()
        .unwrap();
    filters.insert(0, lua);
}
