// SPDX-License-Identifier: Apache-2.0
//! Errors of a bucket: an error that is not about an object never reaches a client or the store unchanged.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::internal_headers::{BUCKET_ERROR_HEADER, FALLBACK_HEADER};
use sluice_core::metrics::Metric;
use sluice_fake::{Answer, Client, FakeEnvoy, FetchId, HeaderTexts as _};

use crate::support::{FIRST, KEY, fill};

/// An edge in front of a bucket. The policy allows any status to be stored.
fn bucket() -> FakeEnvoy {
    let origin = r#""origin": {"kind": "bucket", "bucket": "edge", "addressing": "virtual_host", "authority": "edge.test"}"#;
    let cache = r#""cache": {"ttl": {"default": "1h"}, "stale_while_revalidate": "0s"}, "limits": {"hints": 64, "varying_urls": 64}"#;
    let purge = r#""purge": {"warm": false}"#;
    FakeEnvoy::new(&format!("{{{origin}, {cache}, {purge}}}"), 1)
}

/// Answers with this status and these headers, and with a body that names the bucket.
fn answer(envoy: &mut FakeEnvoy, fetch: FetchId, status: u16, headers: &[(&str, &str)]) {
    let text = ("content-type", "application/xml");
    let headers = [headers, &[text]].concat();
    envoy.answer_with(
        fetch,
        status,
        &headers,
        b"<Error><BucketName>edge</BucketName></Error>",
    );
    fill(envoy, fetch);
}

fn code(code: &str) -> (&str, &str) {
    (BUCKET_ERROR_HEADER, code)
}

fn assert_page(envoy: &FakeEnvoy, client: Client, status: u16, about: &str) {
    let client = &envoy.clients[client.0];
    assert_eq!(client.status(), status, "{about}");
    let body = String::from_utf8_lossy(client.body());
    assert!(body.starts_with("<!doctype html>"), "{about}: {body}");
    assert!(!body.contains("edge"), "{about}: {body}");
    for name in ["location", "x-amz-bucket-region", BUCKET_ERROR_HEADER] {
        assert_eq!(client.header(name), None, "{about}");
    }
}

#[test]
fn the_buckets_request_id_is_in_the_log_alone() {
    let mut envoy = bucket();
    let client = envoy.get(0, KEY);
    let id = ("x-amz-request-id", "4442587FB7D0A2F9");
    envoy.answer_with(FIRST, 404, &[code("NoSuchKey"), id], b"<Error/>");
    let logged = envoy.property(client, "sluice.bucket_request_id");
    assert_eq!(logged.as_deref(), Some(id.1));
    let client = &envoy.clients[client.0];
    assert_eq!((client.status(), client.header(id.0)), (404, None));
}

#[test]
fn an_error_of_the_edges_settings_is_502_for_all_who_wait_and_is_never_stored() {
    let region = ("x-amz-bucket-region", "eu-west-1");
    let away = ("location", "https://site.s3.test/7");
    for (status, headers, metric, advice) in [
        (
            301,
            &[code("PermanentRedirect"), region][..],
            Metric::BucketRegionWrong,
            "AWS_REGION=eu-west-1",
        ),
        (301, &[], Metric::BucketRegionWrong, "AWS_REGION"),
        (
            307,
            &[code("TemporaryRedirect"), away],
            Metric::BucketRegionWrong,
            "AWS_REGION",
        ),
        (
            400,
            &[code("AuthorizationHeaderMalformed eu-west-1")],
            Metric::BucketRegionWrong,
            "AWS_REGION=eu-west-1",
        ),
        (
            400,
            &[code("ExpiredToken")],
            Metric::BucketCredentialsRefused,
            "AWS_SESSION_TOKEN",
        ),
        (
            403,
            &[code("InvalidAccessKeyId")],
            Metric::BucketCredentialsRefused,
            "AWS_ACCESS_KEY_ID",
        ),
        (
            403,
            &[code("SignatureDoesNotMatch")],
            Metric::BucketCredentialsRefused,
            "AWS_SECRET_ACCESS_KEY",
        ),
        (
            403,
            &[code("RequestTimeTooSkewed")],
            Metric::BucketClockSkewed,
            "clock",
        ),
        (
            404,
            &[code("NoSuchBucket")],
            Metric::BucketMissing,
            "ORIGIN",
        ),
    ] {
        let about = format!("{status} {headers:?}");
        let mut envoy = bucket();
        let clients = [envoy.get(0, KEY), envoy.get(0, KEY)];
        answer(&mut envoy, FIRST, status, headers);
        assert_page(&envoy, clients[0], 502, &about);
        assert_eq!(envoy.clients[clients[1].0].status(), 502, "{about}");
        assert_eq!(envoy.fetches.len(), 1, "{about}");
        assert_eq!(envoy.counter(metric), 1, "{about}");
        assert_eq!(envoy.counter(Metric::HitForMissMarked), 0, "{about}");
        let log = envoy.log().join("\n");
        assert!(log.contains(advice), "{about}: {log}");
        // The next request is sent to the bucket, and leads for others.
        let (next, follower) = (envoy.get(0, KEY), envoy.get(0, KEY));
        assert_eq!(envoy.fetches.len(), 2, "{about}");
        fill(&mut envoy, FetchId(1));
        assert_eq!(envoy.clients[next.0].status(), 200, "{about}");
        assert_eq!(envoy.clients[follower.0].status(), 200, "{about}");
        assert_eq!(envoy.fetches.len(), 2, "{about}");
    }
}

#[test]
fn an_event_of_one_kind_hides_none_of_another_within_the_second() {
    let mut envoy = bucket();
    envoy.get_past_edge(0, KEY);
    for key in [KEY, KEY + 1] {
        let client = envoy.get(0, key);
        let fetch = FetchId(envoy.fetches.len() - 1);
        answer(&mut envoy, fetch, 404, &[code("NoSuchBucket")]);
        assert_page(&envoy, client, 502, "no bucket");
    }
    let lines = |text: &str| {
        envoy
            .log()
            .iter()
            .filter(|line| line.contains(text))
            .count()
    };
    assert_eq!(lines("without the edge role's link"), 1);
    assert_eq!(lines("there is no such bucket"), 1);
}

#[test]
fn an_error_about_an_object_is_stored_as_the_policy_says() {
    for (status, headers) in [
        (403, &[code("AccessDenied")][..]),
        (403, &[]),
        (404, &[code("NoSuchKey")]),
        (400, &[code("InvalidArgument")]),
    ] {
        let mut envoy = bucket();
        let said_at_start = envoy.log();
        let client = envoy.get(0, KEY);
        answer(&mut envoy, FIRST, status, headers);
        assert_page(&envoy, client, status, &format!("{status} {headers:?}"));
        let hit = envoy.get(0, KEY);
        envoy.close_all();
        assert_eq!(envoy.clients[hit.0].status(), status);
        assert_eq!(envoy.fetches.len(), 1, "{status} {headers:?}");
        assert_eq!(envoy.log(), said_at_start, "{status} {headers:?}");
    }
}

#[test]
fn a_head_that_is_refused_without_a_code_is_not_stored() {
    for (headers, told, metric) in [
        (&[][..], 400, Metric::BucketRefused),
        (
            &[("x-amz-bucket-region", "eu-west-1")],
            502,
            Metric::BucketRegionWrong,
        ),
        (
            &[("x-minio-error-code", "ExpiredToken")],
            502,
            Metric::BucketCredentialsRefused,
        ),
    ] {
        let mut envoy = bucket();
        for number in 0..2 {
            let client = envoy.head(0, KEY);
            envoy.answer_lookup(0);
            envoy.answer_with(FetchId(number), 400, headers, b"");
            envoy.close_all();
            assert_eq!(envoy.clients[client.0].status(), told, "{headers:?}");
        }
        assert_eq!(envoy.counter(metric), 2, "{headers:?}");
    }
}

#[test]
fn a_stale_object_is_served_where_the_credentials_have_expired() {
    let mut envoy = bucket();
    envoy.ttl = 1;
    let first = envoy.get(0, KEY);
    assert!(
        !envoy.fetches[0].headers.has(FALLBACK_HEADER),
        "nothing is stored"
    );
    envoy.answer(FIRST, Answer::Storable);
    fill(&mut envoy, FIRST);
    assert_eq!(envoy.clients[first.0].status(), 200);
    envoy.advance(3_000);
    envoy.tick(0);
    let client = envoy.get(0, KEY);
    assert_eq!(envoy.fetches[1].headers.get(FALLBACK_HEADER), Some("1"));
    answer(&mut envoy, FetchId(1), 400, &[code("ExpiredToken")]);
    let client = &envoy.clients[client.0];
    assert_eq!(
        (client.status(), client.body()),
        (200, envoy.clients[first.0].body())
    );
}

#[test]
fn the_buckets_own_trouble_keeps_its_status_and_is_counted() {
    for (status, headers, metric) in [
        (503, &[code("SlowDown")][..], Metric::BucketThrottled),
        (429, &[], Metric::BucketThrottled),
        (500, &[code("InternalError")], Metric::BucketFailed),
    ] {
        let mut envoy = bucket();
        let client = envoy.get(0, KEY);
        answer(&mut envoy, FIRST, status, headers);
        assert_page(&envoy, client, status, "trouble");
        assert_eq!(envoy.counter(metric), 1, "{status}");
    }
}
