// SPDX-License-Identifier: Apache-2.0
//! A bucket that notifies through Amazon SNS: signed messages of listed topics purge, and other messages have no
//! effect.

use serde_json::{Value, json};
use sluice_tests::bucket::{Bucket, minio};
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::purger::Purger;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::sns::{self, Sns, TOKEN, TOPIC, signed};
use std::time::{Duration, SystemTime};

const POLICY: &str = "cache: {ttl: {default: 1h}}\n";

/// An edge in front of a bucket that is purged by SNS's messages only.
struct Notified {
    sns: Sns,
    purger: Purger,
    edge: Edge,
}

impl Notified {
    async fn start(sns: Sns, origin: &Origin) -> Self {
        let purger = Purger::new();
        let edge = sns.open(purger.listen(Edge::scripted_bucket(origin)));
        let edge = edge.policy(POLICY).start().await;
        Self { sns, purger, edge }
    }

    /// Delivers a message that must be refused, checks that `/a` is still stored, and returns the error.
    async fn refuse(&self, message: &Value, status: u16) -> String {
        let response = self.purger.deliver(message).await;
        assert_eq!(response.status, status, "{message}: {response}");
        assert!(self.edge.get("/a").await.is_hit(), "{message}");
        let error: Value = serde_json::from_slice(&response.body).unwrap();
        error["error"].as_str().unwrap().to_owned()
    }
}

/// An origin with one object, `/a`, which the edge has stored.
async fn stored(sns: Sns) -> (Origin, Notified) {
    let origin = Origin::start().ready().await;
    origin.on("/site/a", Reply::ok(1_000));
    let notified = Notified::start(sns, &origin).await;
    notified.edge.get("/a").await;
    eventually("a hit", async || notified.edge.get("/a").await.is_hit()).await;
    (origin, notified)
}

fn of_site() -> Value {
    sns::notification("site", "a")
}

async fn put_and_see(bucket: &Bucket, edge: &Edge, purger: &Purger, content: &str) {
    bucket.put("a b+c.txt", &[], content.as_bytes()).await;
    let message = signed(sns::notification(bucket.name(), "a+b%2Bc.txt"));
    let response = purger.deliver(&message).await;
    assert_eq!(response.status, 200, "{response}");
    let got = edge.get("/a%20b%2Bc.txt").await;
    assert_eq!(got.body, content.as_bytes());
    // SNS may send a message twice.
    assert_eq!(purger.deliver(&message).await.status, 200);
    assert_eq!(edge.get("/a%20b%2Bc.txt").await.body, content.as_bytes());
    eventually("a hit", async || edge.get("/a%20b%2Bc.txt").await.is_hit()).await;
}

#[tokio::test]
async fn the_listener_holds_little_of_a_caller_that_it_does_not_know() {
    let (_origin, Notified { purger, edge, .. }) = stored(Sns::start()).await;
    let status = async |bytes: &[u8]| {
        let mut client = Client::connect(purger.address()).await;
        client.exchange(bytes).await.status
    };
    // A request without the token, or beyond the size of any message, is answered without waiting for the body.
    let announced = [("content-length", "1000000")];
    assert_eq!(status(&request("POST", "/purge", &announced)).await, 401);
    assert_eq!(status(&request("POST", "/sns", &announced)).await, 413);
    // A message of unknown length is refused while it arrives.
    let mut growing = request("POST", "/sns", &[("transfer-encoding", "chunked")]);
    growing.extend(format!("70000\r\n{}\r\n", "x".repeat(0x70000)).bytes());
    assert_eq!(status(&growing).await, 413);
    edge.wait_for_counter("sluice_sns_refused", 2).await;
    assert!(edge.get("/a").await.is_hit());
}

#[tokio::test]
async fn a_new_version_is_served_once_sns_has_told_of_it() {
    let minio = minio::shared().await;
    let (sns, purger) = (Sns::start(), Purger::new());
    let bucket = minio.bucket().await;
    let edge = sns.open(purger.listen(Edge::bucket(&bucket))).workers(2);
    let edge = edge.policy(POLICY).start().await;
    assert_eq!(edge.get("/a%20b%2Bc.txt").await.status, 404);
    for content in ["one", "two"] {
        put_and_see(&bucket, &edge, &purger, content).await;
    }
    edge.wait_for_counter("sluice_sns_notifications", 4).await;
    assert_eq!(edge.counter("sluice_purges").await, 4);
    let asked = sns.requests();
    let expected = [
        "CONNECT sns.eu-test-1.amazonaws.com:443".to_owned(),
        "GET /SimpleNotificationService-0123456789abcdef0123456789abcdef.pem".to_owned(),
    ];
    assert_eq!(asked, expected, "the certificate is fetched once");
    edge.wait_for_log(&format!("purge by sns {TOPIC} at "))
        .await;
}

#[tokio::test]
async fn a_subscription_to_a_listed_topic_is_confirmed() {
    let (_origin, notified) = stored(Sns::start()).await;
    let response = notified.purger.deliver(&signed(sns::subscription())).await;
    assert_eq!((response.status, &response.body[..]), (200, &b"{}\n"[..]));
    let asked = notified.sns.requests();
    let confirmed = format!("GET /?Action=ConfirmSubscription&TopicArn={TOPIC}&Token={TOKEN}");
    assert_eq!(asked.last(), Some(&confirmed), "{asked:?}");
    let edge = &notified.edge;
    edge.wait_for_counter("sluice_sns_confirmations", 1).await;
    edge.wait_for_log(&format!("the subscription to {TOPIC} is confirmed"))
        .await;
    assert!(!edge.log().contains(TOKEN));
    assert!(edge.get("/a").await.is_hit());
}

#[tokio::test]
async fn the_test_event_of_s3_and_the_end_of_a_subscription_do_nothing() {
    let (_origin, notified) = stored(Sns::start()).await;
    let mut test = of_site();
    test["Message"] = json!(r#"{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"site"}"#);
    assert_eq!(notified.purger.deliver(&signed(test)).await.status, 200);
    let mut end = sns::subscription();
    end["Type"] = json!("UnsubscribeConfirmation");
    assert_eq!(notified.purger.deliver(&signed(end)).await.status, 200);
    assert!(notified.edge.get("/a").await.is_hit());
    let asked = notified.sns.requests();
    assert!(
        !asked.iter().any(|request| request.contains("Action=")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_message_that_sns_has_not_signed_does_nothing() {
    let (_origin, notified) = stored(Sns::start()).await;
    let unsigned = {
        let mut message = signed(of_site());
        message["Signature"] = json!("");
        message
    };
    let mut tampered = signed(sns::notification("site", "b"));
    tampered["Message"] = of_site()["Message"].clone();
    let mut confirmed = signed(of_site());
    confirmed["Type"] = json!("SubscriptionConfirmation");
    confirmed["Token"] = json!(TOKEN);
    confirmed["SubscribeURL"] = json!("https://example.com/");
    for message in [unsigned, tampered, confirmed] {
        let error = notified.refuse(&message, 403).await;
        assert!(error.starts_with("Signature: expected"), "{error}");
    }
    let error = notified.refuse(&json!({"Records": []}), 400).await;
    assert!(error.contains("RawMessageDelivery to be off"), "{error}");
    let refused = notified.edge.counter("sluice_sns_refused").await;
    assert_eq!(refused, 4);
    assert_eq!(notified.edge.counter("sluice_purges").await, 0);
    // The control: the message is signed correctly.
    assert_eq!(
        notified.purger.deliver(&signed(of_site())).await.status,
        200
    );
    assert!(!notified.edge.get("/a").await.is_hit());
}

#[tokio::test]
async fn a_message_of_a_stranger_makes_the_edge_fetch_nothing() {
    let (_origin, notified) = stored(Sns::start()).await;
    let with = |field: &str, value: String| {
        let mut message = of_site();
        message[field] = json!(value);
        signed(message)
    };
    let proxy = notified.sns.proxy();
    for (message, field) in [
        (with("TopicArn", TOPIC.replace("site", "other")), "TopicArn"),
        (
            with("TopicArn", TOPIC.replace("eu-test-1", "us-east-1")),
            "TopicArn",
        ),
        (
            with("SigningCertURL", format!("http://{proxy}/x.pem")),
            "SigningCertURL",
        ),
        (
            with(
                "SigningCertURL",
                "https://example.com/SimpleNotificationService-0.pem".into(),
            ),
            "SigningCertURL",
        ),
        (
            with(
                "Timestamp",
                sns::timestamp(SystemTime::now() - Duration::from_secs(3_700)),
            ),
            "Timestamp",
        ),
        (
            with(
                "Timestamp",
                sns::timestamp(SystemTime::now() + Duration::from_secs(600)),
            ),
            "Timestamp",
        ),
    ] {
        let error = notified.refuse(&message, 403).await;
        assert!(error.starts_with(field), "{error}");
    }
    assert_eq!(notified.sns.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn certificates_are_taken_from_sns_alone() {
    for sns in [Sns::of_an_unknown_authority(), Sns::of_another_name()] {
        let (_origin, notified) = stored(sns).await;
        let error = notified.refuse(&signed(of_site()), 503).await;
        assert!(error.starts_with("SigningCertURL: "), "{error}");
        let asked = notified.sns.requests();
        assert_eq!(asked, ["CONNECT sns.eu-test-1.amazonaws.com:443"]);
        assert_eq!(notified.edge.counter("sluice_sns_unverified").await, 1);
    }
}

#[tokio::test]
async fn a_message_can_be_sent_again_where_sns_is_out_of_reach() {
    let (_origin, notified) = stored(Sns::start()).await;
    notified.sns.go_away().await;
    notified.refuse(&signed(of_site()), 503).await;
    let edge = &notified.edge;
    edge.wait_for_log("SNS: a message was refused: SigningCertURL")
        .await;
    assert_eq!(edge.counter("sluice_sns_unverified").await, 1);
}

#[tokio::test]
async fn a_message_that_is_too_long_is_refused() {
    let (_origin, notified) = stored(Sns::start()).await;
    let mut message = of_site();
    message["Message"] = json!("x".repeat(2 << 20));
    let response = notified.purger.deliver(&signed(message)).await;
    assert_eq!(response.status, 413, "{response}");
    assert!(notified.edge.get("/a").await.is_hit());
    // The control: the message is as long as SNS's are.
    let mut message = of_site();
    let event = message["Message"].as_str().unwrap().to_owned();
    message["Message"] = json!(event + &" ".repeat(256 << 10));
    let response = notified.purger.deliver(&signed(message)).await;
    assert_eq!(response.status, 200, "{response}");
    assert!(!notified.edge.get("/a").await.is_hit());
}

#[tokio::test]
async fn sns_opens_nothing_else_and_is_closed_unless_topics_are_listed() {
    let (origin, notified) = stored(Sns::start()).await;
    let purger = &notified.purger;
    let everything = json!({"everything": true});
    assert_eq!(purger.call(&everything).await.status, 401);
    for (method, path, status) in [
        ("GET", "/sns", 405),
        ("POST", "/s3", 401),
        ("POST", "/sns/", 401),
        ("POST", "/sns?x", 401),
        ("PURGE", "/a", 401),
    ] {
        let response = purger.send(method, path, &[], "").await;
        assert_eq!(response.status, status, "{method} {path}");
    }
    let other = Purger::new();
    let edge = other.open(Edge::scripted_bucket(&origin)).start().await;
    assert_eq!(other.deliver(&signed(of_site())).await.status, 401);
    assert_eq!(edge.counter("sluice_purges").await, 0);
}
