// SPDX-License-Identifier: Apache-2.0
//! A failing bucket gets careful retries. An error that the edge's own settings cause reaches no client and no store.

use super::hop::{before, raw_origin};
use sluice_tests::bare::Bare;
use sluice_tests::bucket::Bucket;
use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::store::Store;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::http::message::Wire;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::time::Duration;
use test_case::test_case;
use tokio::io::AsyncWriteExt as _;

/// S3's error document as Amazon S3 sends it: of unannounced length.
fn error(status: u16, code: &str, more: &str) -> Reply {
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>No.</Message>{more}\
         <BucketName>site</BucketName><RequestId>R</RequestId></Error>"
    );
    Reply::text(text)
        .with_status(status)
        .header("content-type", "application/xml")
        .chunked()
}

fn slow_down() -> Reply {
    error(503, "SlowDown", "")
}

fn edge(origin: &Origin) -> Builder {
    Edge::scripted_bucket(origin).workers(1)
}

#[track_caller]
fn assert_says_nothing(response: &Response) {
    let text = response.to_string();
    let body = String::from_utf8_lossy(&response.body);
    assert!(body.starts_with("<!doctype html>"), "{body}");
    for secret in [
        "site",
        "<Code>",
        "eu-west-1",
        "x-amz-",
        "x-sluice-",
        "x-envoy-",
        "x-minio-",
    ] {
        assert!(
            !text.contains(secret) && !body.contains(secret),
            "{secret}: {text}{body}"
        );
    }
}

#[tokio::test]
async fn a_bucket_that_fails_for_a_moment_is_asked_again() {
    let origin = Origin::start().ready().await;
    let failures = [
        ("500", error(500, "InternalError", "")),
        ("502", Reply::status(502)),
        ("503", slow_down()),
        ("504", Reply::status(504)),
        ("reset", Reply::ok(1000).reset()),
    ];
    let (retries, control) = tokio::join!(
        edge(&origin).start(),
        edge(&origin).env("SLUICE_S3_RETRIES", "0").start()
    );
    for (name, failure) in failures {
        for method in ["GET", "HEAD"] {
            let path = format!("/{method}-{name}");
            origin.on_each(
                &format!("/site{path}"),
                [failure.clone(), failure.clone(), Reply::ok(1000)],
            );
            let response = retries.send(method, &path, &[]).await;
            assert_eq!(response.status, 200, "{path}: {response}");
            assert_eq!(origin.count(&format!("/site{path}")), 3, "{path}");
        }
        let path = format!("/control-{name}");
        origin.on_each(&format!("/site{path}"), [failure, Reply::ok(1000)]);
        // A request that was lost with a closed connection is sent once more, whatever the number of retries is.
        let is_lost = name == "reset";
        let failed = control.get(&path).await.status >= 500;
        assert_eq!(failed, !is_lost, "{path}");
        let asked = 1 + usize::from(is_lost);
        assert_eq!(origin.count(&format!("/site{path}")), asked, "{path}");
    }
}

#[tokio::test]
async fn an_http_origin_that_fails_is_not_asked_again() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::status(503));
    let edge = Edge::http(&origin).workers(1).start().await;
    assert_eq!(edge.get("/a").await.status, 503);
    assert_eq!(origin.count("/a"), 1);
}

#[tokio::test]
async fn a_bucket_that_names_a_time_is_left_alone_until_then() {
    let origin = Origin::start().ready().await;
    let soon = slow_down().header("retry-after", "1");
    origin.on_each("/site/soon", [soon, Reply::ok(1000)]);
    let late = ["3", "3600", "Fri, 31 Dec 2100 23:59:59 GMT"];
    for (number, late) in late.iter().enumerate() {
        let reply = slow_down().header("retry-after", late);
        origin.on(&format!("/site/late-{number}"), reply);
    }
    let edge = edge(&origin).start().await;
    assert_eq!(edge.get("/soon").await.status, 200);
    let asked = origin.requests().of("/site/soon");
    let pause = asked[1].at.duration_since(asked[0].at);
    assert!(pause >= Duration::from_millis(950), "{pause:?}");
    for (number, late) in late.iter().enumerate() {
        let response = edge.get(&format!("/late-{number}")).await;
        assert_eq!(response.status, 503, "{response}");
        assert_eq!(response.header("retry-after"), *late);
        assert_says_nothing(&response);
        assert_eq!(origin.count(&format!("/site/late-{number}")), 1);
    }
}

#[tokio::test]
async fn followers_share_the_last_of_a_leaders_attempts() {
    const CLIENTS: usize = 40;
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/site/a", slow_down().hold(&gate));
    let edge = edge(&origin).start().await;
    let flight = Crowd::connect(edge.address(), CLIENTS).await.fire("/a");
    edge.wait_for_counter("sluice_parked_now", CLIENTS as u64 - 1)
        .await;
    gate.open();
    flight.land().await.all(503);
    assert_eq!(origin.count("/site/a"), 3);
    assert_eq!(edge.counter("sluice_bucket_throttled").await, 1);
}

#[tokio::test]
async fn a_bucket_that_is_down_gets_few_retries() {
    const CLIENTS: usize = 100;
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("*", slow_down().hold(&gate));
    let edge = edge(&origin).env("SLUICE_STATS", "all").start().await;
    let ask = |number: usize| {
        let address = edge.address();
        async move {
            let mut client = Client::connect(address).await;
            client.get(&format!("/{number}")).await.status
        }
    };
    let asked: Vec<_> = (0..CLIENTS)
        .map(|number| tokio::spawn(ask(number)))
        .collect();
    gate.wait_reached(CLIENTS).await;
    gate.open();
    for status in asked {
        assert_eq!(status.await.unwrap(), 503);
    }
    let total = origin.requests().total();
    assert!(total <= CLIENTS * 2, "{total} requests");
    let refused = "cluster.origin_server.upstream_rq_retry_overflow";
    assert!(edge.counter(refused).await >= 20, "retries have a budget");
}

#[tokio::test]
async fn a_client_whose_stale_object_is_at_hand_waits_for_no_retry() {
    let origin = Origin::start().ready().await;
    let brief = Reply::ok(1000)
        .header(
            "cache-control",
            "max-age=1, stale-while-revalidate=0, stale-if-error=600",
        )
        .etag("v1");
    // A refresh in the background may be retried a second later.
    let failure = slow_down().header("retry-after", "1");
    origin.on_each("/site/a", [brief, failure]);
    let edge = edge(&origin).start().await;
    let first = edge.get("/a").await.stamp("/site/a");
    sluice_tests::eventually("the bucket is asked", async || {
        assert_eq!(edge.get("/a").await.stamp("/site/a"), first);
        origin.count("/site/a") > 1
    })
    .await;
    let asked = origin.requests();
    assert_eq!(origin.count("/site/a"), 2, "{}", asked.summary());
    let cold = slow_down();
    origin.on("/site/cold", cold);
    assert_eq!(edge.get("/cold").await.status, 503);
    assert_eq!(origin.count("/site/cold"), 3, "nothing is stored");
}

#[tokio::test]
async fn a_response_that_has_begun_is_not_asked_for_again() {
    let origin = Origin::start().ready().await;
    origin.on("/site/a", Reply::ok(200_000).reset_after(1000));
    let edge = edge(&origin).start().await;
    let mut client = Client::connect(edge.address()).await;
    let cut = client.try_exchange(request("GET", "/a", &[])).await;
    assert!(cut.is_err(), "{cut:?}");
    assert_eq!(origin.count("/site/a"), 1);
}

#[test_case(301, "PermanentRedirect", "", "region_wrong", "AWS_REGION=eu-west-1"; "a bucket of another region")]
#[test_case(307, "TemporaryRedirect", "", "region_wrong", "AWS_REGION=eu-west-1"; "a bucket that is new")]
#[test_case(400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>", "region_wrong", "AWS_REGION=eu-west-1"; "a signature for another region")]
#[test_case(400, "ExpiredToken", "", "credentials_refused", "AWS_SESSION_TOKEN"; "an expired token")]
#[test_case(403, "InvalidAccessKeyId", "", "credentials_refused", "AWS_ACCESS_KEY_ID"; "an unknown key")]
#[test_case(401, "Unauthorized", "", "credentials_refused", "AWS_ACCESS_KEY_ID"; "a key that R2 does not know")]
#[test_case(403, "RequestTimeTooSkewed", "", "clock_skewed", "set the clock"; "a wrong clock")]
#[test_case(404, "NoSuchBucket", "", "missing", "correct SLUICE_ORIGIN"; "no bucket")]
#[tokio::test]
async fn an_error_of_the_settings_is_502_and_never_stored(
    status: u16,
    code: &str,
    more: &str,
    metric: &str,
    advice: &str,
) {
    let origin = Origin::start().ready().await;
    let mut reply = error(status, code, more).max_age(3600);
    if (300..400).contains(&status) {
        reply = reply.header("x-amz-bucket-region", "eu-west-1");
    }
    origin.on("*", reply);
    let edge = edge(&origin).env("SLUICE_ACCESS_LOG", "json").start().await;
    for asked in 1..=3 {
        let response = edge.get("/a").await;
        assert_eq!(response.status, 502, "{response}");
        assert_says_nothing(&response);
        assert_eq!(origin.count("/site/a"), asked, "{response}");
    }
    let part = edge.send("GET", "/a", &[("range", "bytes=0-9")]).await;
    assert_eq!(part.status, 502, "{part}");
    edge.wait_for_log(advice).await;
    edge.wait_for_log(&format!("\"bucket_error\":\"{code}\""))
        .await;
    let counted = edge.counter(&format!("sluice_bucket_{metric}")).await;
    assert!(counted >= 3, "{counted}");
    assert_eq!(edge.counter("sluice_hit_for_miss_marked").await, 0);
    origin.on("/site/a", Reply::ok(1000));
    let _ = edge.get("/a").await.stamp("/site/a");
}

#[tokio::test]
async fn control_bare_envoy_stores_what_a_bucket_says_of_itself_and_retries_nothing() {
    let origin = Origin::start().ready().await;
    let redirect = error(301, "PermanentRedirect", "").header("x-amz-bucket-region", "eu-west-1");
    origin.on("/moved", redirect.max_age(3600));
    origin.on("/busy", slow_down());
    let bare = Bare::start(&origin, Store::V1_DISK, 1).await;
    sluice_tests::eventually("it is stored", async || {
        let response = bare.get("/moved").await;
        assert_eq!(response.status, 301, "{response}");
        assert_eq!(response.header("x-amz-bucket-region"), "eu-west-1");
        assert!(String::from_utf8_lossy(&response.body).contains("<BucketName>"));
        response.headers.get("age").is_some()
    })
    .await;
    assert_eq!(bare.get("/busy").await.status, 503);
    assert_eq!(origin.count("/busy"), 1);
}

/// A HEAD's response has no body, and Amazon S3 sends no code with it.
#[tokio::test]
async fn a_head_learns_of_another_region_by_a_header() {
    let origin = Origin::start().ready().await;
    for (path, status) in [("/site/301", 301), ("/site/400", 400)] {
        let reply = Reply::status(status).empty();
        origin.on(path, reply.header("x-amz-bucket-region", "eu-west-1"));
    }
    let edge = edge(&origin).start().await;
    for path in ["/301", "/400"] {
        for asked in 1..=2 {
            let response = edge.send("HEAD", path, &[]).await;
            assert_eq!(response.status, 502, "{response}");
            assert_eq!(origin.count(&format!("/site{path}")), asked, "{response}");
        }
    }
    edge.wait_for_log("AWS_REGION=eu-west-1").await;
}

#[tokio::test]
async fn an_error_about_one_object_is_not_the_edges_trouble() {
    let origin = Origin::start().ready().await;
    origin.on("/site/403", error(403, "AccessDenied", ""));
    origin.on("/site/404", error(404, "NoSuchKey", ""));
    let edge = edge(&origin)
        .policy("cache: {ttl: {default: 1h}}\n")
        .start()
        .await;
    for status in [403, 404] {
        for _ in 0..2 {
            let response = edge.get(&format!("/{status}")).await;
            assert_eq!(response.status, status, "{response}");
            assert_says_nothing(&response);
        }
        assert_eq!(origin.count(&format!("/site/{status}")), 1, "stored");
    }
    assert_eq!(edge.log_lines("sluice: the bucket"), [""; 0]);
}

#[test_case("AWS_ACCESS_KEY_ID", "AKIDUNKNOWN", "403 InvalidAccessKeyId"; "an unknown key")]
#[test_case("AWS_SECRET_ACCESS_KEY", "not-the-secret-key", "403 SignatureDoesNotMatch"; "a wrong secret")]
#[test_case("SLUICE_ORIGIN", "s3://no-such-bucket", "404 NoSuchBucket"; "no such bucket")]
#[tokio::test]
async fn a_real_bucket_names_what_is_wrong(name: &str, value: &str, told: &str) {
    let bucket = Bucket::new().await;
    bucket.put_stamped("a", 1, 1000).await;
    let edge = Edge::bucket(&bucket).workers(1).env(name, value);
    let edge = edge.start().await;
    for method in ["GET", "HEAD", "GET"] {
        let response = edge.send(method, "/a", &[]).await;
        assert_eq!(response.status, 502, "{method}: {response}");
        assert!(!response.is_hit(), "{method}: {response}");
    }
    edge.wait_for_log(told).await;
}

#[tokio::test]
async fn an_error_document_of_any_length_and_shape_is_read_in_bounds() {
    let origin = raw_origin(async |mut stream| {
        let (read, mut write) = stream.split();
        let mut wire = Wire::new(read);
        while let Ok(Some(head)) = wire.head().await {
            let path = head.word(1).strip_prefix("/site").unwrap_or_default();
            let body = match path {
                "/none" => String::new(),
                "/late" => format!("{}<Code>Late</Code>", " ".repeat(5_000)),
                "/open" => "<Error><Code>Open".to_owned(),
                "/odd" => "<Code>a b</Code><Code></Code>\0\u{e9}".to_owned(),
                _ => format!("<Code>{}</Code>", "A".repeat(3_000)),
            };
            let answer = format!(
                "HTTP/1.1 403 Forbidden\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            if write.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    })
    .await;
    let edge = before(origin)
        .env("SLUICE_ORIGIN", "s3://site")
        .env("SLUICE_S3_ENDPOINT", format!("http://{origin}"))
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "AKIDSCRIPTED")
        .env("AWS_SECRET_ACCESS_KEY", "scripted-secret-value")
        .env("SLUICE_ACCESS_LOG", "json")
        .start()
        .await;
    for path in ["/none", "/late", "/open", "/odd", "/long"] {
        let response = edge.get(path).await;
        assert_eq!(response.status, 403, "{path}: {response}");
    }
    assert_eq!(edge.log_lines("bucket_error"), [""; 0]);
}

#[test_case("AWS_SECRET_ACCESS_KEY", "not-the-secret-key", "refuses the credentials"; "a wrong secret")]
#[test_case("SLUICE_ORIGIN", "s3://no-such-bucket", "there is no such bucket"; "no such bucket")]
#[test_case("SLUICE_S3_ENDPOINT", "http://127.0.0.1:1", "no answer from the origin"; "nobody there")]
#[tokio::test]
async fn an_edge_says_at_its_start_what_is_wrong_with_its_bucket(
    name: &str,
    value: &str,
    told: &str,
) {
    let bucket = Bucket::new().await;
    let edge = Edge::bucket(&bucket)
        .workers(1)
        .env("SLUICE_S3_CHECK", "on");
    let mut edge = edge.env(name, value).start().await;
    edge.wait_for_log(told).await;
    edge.wait_for_log("sluice: the bucket cannot be read (status 50")
        .await;
    assert!(edge.alive());
}

#[tokio::test]
async fn an_edge_whose_bucket_answers_says_nothing_at_its_start() {
    let bucket = Bucket::new().await;
    let edge = Edge::bucket(&bucket)
        .workers(1)
        .env("SLUICE_S3_CHECK", "on");
    let edge = edge.start().await;
    let asked = "the bucket is asked once";
    sluice_tests::eventually(asked, async || bucket.requests().total() == 1).await;
    assert_eq!(edge.log_lines("the bucket"), [""; 0]);
}

#[tokio::test]
async fn a_bucket_that_may_not_be_listed_is_told_at_the_start() {
    let origin = Origin::start().ready().await;
    origin.on("*", error(403, "AccessDenied", ""));
    let edge = edge(&origin).env("SLUICE_S3_CHECK", "on").start().await;
    edge.wait_for_log("s3:ListBucket").await;
}
