// SPDX-License-Identifier: Apache-2.0
//! The messages that are accepted. `testdata` has messages that OpenSSL has signed, and the key.

use std::sync::{Arc, Barrier, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, date_time_ymd};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::message::{Message, MessageKind};
use super::refusal::Refusal;
use super::service::Service;
use super::topic::Topic;
use super::verifier::Verifier;

const KEY: &str = include_str!("testdata/signing.key");
const OTHER_KEY: &str = include_str!("../../tests/support/localhost.key");
const NOTIFICATION_1: &str = include_str!("testdata/notification_1.json");
const NOTIFICATION_2: &str = include_str!("testdata/notification_2.json");
const SUBSCRIPTION_1: &str = include_str!("testdata/subscription_1.json");
const TOPIC: &str = "arn:aws:sns:eu-central-1:123456789012:site";
const FILE: &str = "SimpleNotificationService-0123456789abcdef0123456789abcdef.pem";

/// The requests that SNS has received.
#[derive(Default)]
struct Requests {
    files: Vec<String>,
    tokens: Vec<(String, String)>,
}

/// A fake SNS that sends the certificate in a file, or answers a request with a status; 0: it cannot be reached.
fn fake_sns(
    asked: Arc<Mutex<Requests>>,
    certificate: impl Fn(&str) -> Result<String, u16> + Send + Sync + 'static,
) -> Service {
    Box::new(move |url| {
        let mut asked = asked.lock().unwrap();
        let (host, path) = url
            .strip_prefix("https://")
            .unwrap()
            .split_once('/')
            .unwrap();
        if let Some(query) = path.strip_prefix("?Action=ConfirmSubscription&TopicArn=") {
            let (arn, token) = query.split_once("&Token=").unwrap();
            asked.tokens.push((arn.to_owned(), token.to_owned()));
            return Ok(Vec::new());
        }
        asked.files.push(format!("{host}/{path}"));
        drop(asked);
        match certificate(path) {
            Ok(pem) => Ok(pem.into_bytes()),
            Err(0) => Err(Refusal::unavailable("connection refused")),
            Err(status) => Err(Refusal::of_answer(status.try_into().unwrap())),
        }
    })
}

fn certificate(key: &str, change: impl Fn(&mut CertificateParams)) -> String {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "sns.amazonaws.com");
    change(&mut params);
    let key = KeyPair::from_pem(key).unwrap();
    params.self_signed(&key).unwrap().pem()
}

struct Setup {
    verifier: Verifier,
    asked: Arc<Mutex<Requests>>,
}

impl Setup {
    fn with(certificate: Result<String, u16>) -> Self {
        Self::with_files(move |_| certificate.clone())
    }

    fn with_files(
        certificate: impl Fn(&str) -> Result<String, u16> + Send + Sync + 'static,
    ) -> Self {
        let asked = Arc::new(Mutex::default());
        let fake = fake_sns(Arc::clone(&asked), certificate);
        let topics = vec![Topic::parse(TOPIC).unwrap()];
        Self {
            verifier: Verifier::new(topics, fake),
            asked,
        }
    }

    fn new() -> Self {
        Self::with(Ok(certificate(KEY, |_| {})))
    }

    fn take(&self, message: &str) -> Result<Message, Refusal> {
        self.verifier.verify(message.as_bytes(), now())
    }

    fn refusal(&self, message: &Value) -> (u16, String) {
        let refusal = self.take(&message.to_string()).unwrap_err();
        (refusal.status.as_u16(), refusal.reason)
    }

    fn files(&self) -> usize {
        self.asked.lock().unwrap().files.len()
    }
}

/// Ten minutes after the messages of `testdata`.
fn now() -> Timestamp {
    "2026-11-21T12:10:00Z".parse().unwrap()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The notification with some fields changed.
fn changed(fields: Value) -> Value {
    let mut message = parsed(NOTIFICATION_2);
    for (name, value) in fields.as_object().unwrap() {
        message[name] = value.clone();
    }
    message
}

/// The notification with another certificate.
fn certified_by(file: &str) -> Value {
    let url = format!("https://sns.eu-central-1.amazonaws.com/{file}");
    changed(json!({"SigningCertURL": url}))
}

/// A forged notification whose certificate does not exist.
fn invented(number: u32) -> Value {
    certified_by(&format!("SimpleNotificationService-{number}.pem"))
}

/// The notification with some fields changed, and signed after that.
fn signed(fields: Value) -> Value {
    let mut message = changed(fields);
    message["SignatureVersion"] = json!("2");
    let text = Message::parse(message.to_string().as_bytes())
        .unwrap()
        .signed_text();
    let key = PrivatePkcs8KeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let key = RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()).unwrap();
    let mut signature = vec![0; key.public().modulus_len()];
    let random = SystemRandom::new();
    key.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature)
        .unwrap();
    message["Signature"] = json!(STANDARD.encode(signature));
    message
}

#[test]
fn notifications_of_both_signature_versions_are_taken() {
    for message in [NOTIFICATION_1, NOTIFICATION_2] {
        let taken = Setup::new().take(message).unwrap();
        assert_eq!(taken.kind, MessageKind::Notification);
        let key = &parsed(&taken.message)["Records"][0]["s3"]["object"]["key"];
        assert_eq!(key, "caf%C3%A9+1/a%2Bb.css");
    }
}

#[test]
fn a_notification_may_have_no_subject_and_may_come_again() {
    let edge = Setup::new();
    let message = signed(json!({"Subject": null, "Message": "é\n\"x\""})).to_string();
    for _ in 0..3 {
        assert_eq!(edge.take(&message).unwrap().message, "é\n\"x\"");
    }
    assert_eq!(edge.files(), 1, "SNS is asked for a certificate once");
}

#[test]
fn a_subscription_to_a_listed_topic_is_confirmed_by_its_token() {
    let edge = Setup::new();
    let taken = edge.take(SUBSCRIPTION_1).unwrap();
    assert_eq!(taken.kind, MessageKind::SubscriptionConfirmation);
    let token = parsed(SUBSCRIPTION_1)["Token"].as_str().unwrap().to_owned();
    let asked = edge.asked.lock().unwrap();
    assert_eq!(asked.tokens, [(TOPIC.to_owned(), token)]);
    let certificate = format!("sns.eu-central-1.amazonaws.com/{FILE}");
    assert_eq!(asked.files, [certificate]);
}

#[test]
fn the_end_of_a_subscription_is_noted_and_nothing_confirmed() {
    let edge = Setup::new();
    let mut message = parsed(SUBSCRIPTION_1);
    message["Type"] = json!("UnsubscribeConfirmation");
    let message = signed(message);
    let taken = edge.take(&message.to_string()).unwrap();
    assert_eq!(taken.kind, MessageKind::UnsubscribeConfirmation);
    assert!(edge.asked.lock().unwrap().tokens.is_empty());
}

#[test]
fn no_signed_field_can_be_changed() {
    let edge = Setup::new();
    for fields in [
        json!({"Message": "{}"}),
        json!({"MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf325"}),
        json!({"Subject": null}),
        json!({"Subject": "Amazon S3 Notification "}),
        json!({"Timestamp": "2026-11-21T12:00:00.656Z"}),
        json!({"Timestamp": "2026-11-21T12:00:00.6550Z"}),
        json!({"Signature": "AAAA"}),
        json!({"Signature": "no base64"}),
        json!({"SignatureVersion": "1"}),
    ] {
        let (status, reason) = edge.refusal(&changed(fields.clone()));
        let expected = "Signature: expected that of SNS over this message";
        assert_eq!((status, reason.as_str()), (403, expected), "{fields}");
    }
    let mut subscription = parsed(SUBSCRIPTION_1);
    for field in ["Token", "SubscribeURL"] {
        let old = subscription[field].take();
        subscription[field] = json!("x");
        assert_eq!(edge.refusal(&subscription).0, 403, "{field}");
        subscription[field] = old;
    }
    // The kind of a message is signed too.
    subscription["Type"] = json!("UnsubscribeConfirmation");
    assert_eq!(edge.refusal(&subscription).0, 403);
    assert!(edge.asked.lock().unwrap().tokens.is_empty());
}

#[test]
fn another_key_signs_nothing() {
    let edge = Setup::with(Ok(certificate(OTHER_KEY, |_| {})));
    assert_eq!(edge.refusal(&parsed(NOTIFICATION_1)).0, 403);
    assert_eq!(edge.refusal(&parsed(NOTIFICATION_2)).0, 403);
}

#[test]
fn a_certificate_counts_only_while_it_is_valid() {
    let until = |year| {
        Setup::with(Ok(certificate(KEY, |params| {
            params.not_after = date_time_ymd(year, 1, 1)
        })))
    };
    let (status, reason) = until(2026).refusal(&parsed(NOTIFICATION_2));
    assert_eq!(
        (status, reason),
        (403, format!("SigningCertURL: {FILE} is not valid now"))
    );
    assert!(until(2027).take(NOTIFICATION_2).is_ok());
}

#[test]
fn a_certificate_counts_only_if_it_is_for_sns() {
    let named = |name: &str| {
        let certificate = certificate(KEY, |params| {
            params.distinguished_name = DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, name);
        });
        Setup::with(Ok(certificate)).take(NOTIFICATION_2)
    };
    for name in [
        "sns.amazonaws.com",
        "sns-signing.eu-south-1.amazonaws.com",
        "sns-us-gov-west-1.amazonaws.com",
    ] {
        assert!(named(name).is_ok(), "{name}");
    }
    for name in [
        "",
        "sqs.amazonaws.com",
        "sns.amazonaws.com.evil.test",
        "sns-signing.amazonaws.com.cn",
        "sns-evilamazonaws.com",
        "x.sns-signing.amazonaws.com",
    ] {
        assert_eq!(named(name).unwrap_err().status, 403, "{name}");
    }
}

#[test]
fn nothing_is_fetched_but_certificates_of_the_topics_region() {
    let edge = Setup::new();
    for url in [
        "http://sns.eu-central-1.amazonaws.com/SimpleNotificationService-0.pem",
        "https://sns.eu-central-1.amazonaws.com.evil.test/SimpleNotificationService-0.pem",
        "https://evil.test/SimpleNotificationService-0.pem",
        "https://evil.test/https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-0.pem",
        "https://x@sns.eu-central-1.amazonaws.com/SimpleNotificationService-0.pem",
        "https://sns.eu-central-1.amazonaws.com@evil.test/SimpleNotificationService-0.pem",
        "https://sns.eu-central-1.amazonaws.com:8443/SimpleNotificationService-0.pem",
        "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem",
        "https://sns.eu-central-1.amazonaws.com.cn/SimpleNotificationService-0.pem",
        "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-.pem",
        "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-../x.pem",
        "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-0.pem?x",
        "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-0.pem#.pem",
        "https://sns.eu-central-1.amazonaws.com/x/SimpleNotificationService-0.pem",
        "https://sns.eu-central-1.amazonaws.com/?Action=Publish&x=SimpleNotificationService-0.pem",
        "https://bucket.s3.amazonaws.com/SimpleNotificationService-0.pem",
        "",
    ] {
        let (status, reason) = edge.refusal(&signed(json!({"SigningCertURL": url})));
        assert_eq!(status, 403, "{url}");
        let accepted =
            "expected https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-….pem";
        assert!(reason.ends_with(accepted), "{reason}");
    }
    assert_eq!(edge.files(), 0);
}

#[test]
fn topics_that_are_not_listed_are_refused_before_anything_is_fetched() {
    let edge = Setup::new();
    for arn in [
        "arn:aws:sns:eu-central-1:123456789012:site2",
        "arn:aws:sns:eu-central-1:999999999999:site",
        "arn:aws:sns:us-east-1:123456789012:site",
        &"x".repeat(10_000),
        "",
    ] {
        let (status, reason) = edge.refusal(&signed(json!({"TopicArn": arn})));
        assert_eq!(status, 403);
        assert!(reason.starts_with("TopicArn: \""), "{reason}");
        assert!(reason.ends_with(": expected one of SLUICE_SNS_TOPICS") && reason.len() < 300);
    }
    let mut subscription = parsed(SUBSCRIPTION_1);
    subscription["TopicArn"] = json!("arn:aws:sns:eu-central-1:123456789012:other");
    assert_eq!(edge.refusal(&signed(subscription)).0, 403);
    assert_eq!(edge.files(), 0);
    assert!(edge.asked.lock().unwrap().tokens.is_empty());
}

#[test]
fn messages_are_taken_for_an_hour() {
    let edge = Setup::new();
    let at = |seconds: i64| {
        let time = now() + SignedDuration::from_secs(seconds);
        signed(json!({"Timestamp": time.to_string()}))
    };
    for seconds in [-3_600, 0, 300] {
        assert!(edge.take(&at(seconds).to_string()).is_ok(), "{seconds}");
    }
    for seconds in [-3_601, 301, -86_400, 86_400] {
        let (status, reason) = edge.refusal(&at(seconds));
        assert_eq!(status, 403);
        assert!(
            reason.ends_with("expected a time within the last hour"),
            "{reason}"
        );
    }
    let (status, reason) = edge.refusal(&changed(json!({"Timestamp": "yesterday"})));
    assert_eq!(status, 400);
    assert!(
        reason.starts_with("Timestamp: \"yesterday\": expected"),
        "{reason}"
    );
}

#[test]
fn what_is_no_message_is_told_what_is_expected() {
    let edge = Setup::new();
    let event = parsed(NOTIFICATION_1)["Message"]
        .as_str()
        .unwrap()
        .to_owned();
    for body in ["", "[]", "{}", "null", &event, "\u{0}"] {
        let Err(Refusal { status, reason }) = edge.take(body) else {
            panic!("{body}");
        };
        assert_eq!(status, 400);
        assert!(
            reason.starts_with("the body: ") && reason.contains("RawMessageDelivery to be off"),
            "{reason}"
        );
    }
    for (field, value) in [
        ("Type", json!("Other")),
        ("SignatureVersion", json!("3")),
        ("SignatureVersion", json!(2)),
        ("Message", json!({})),
    ] {
        assert_eq!(edge.refusal(&changed(json!({field: value}))).0, 400);
    }
    let twice = NOTIFICATION_2.replacen('{', "{\"Message\": \"x\",", 1);
    assert_eq!(edge.take(&twice).unwrap_err().status, 400);
    let mut subscription = parsed(SUBSCRIPTION_1);
    subscription["Token"].take();
    assert_eq!(
        edge.refusal(&subscription),
        (400, "Token: missing".to_owned())
    );
    assert_eq!(edge.files(), 0);
}

#[test]
fn one_signed_text_is_one_message_only() {
    let edge = Setup::new();
    // The same text, but the end of the message is read as the fields that follow it.
    let whole = signed(json!({"Message": "a\nMessageId\nb", "MessageId": "c", "Subject": null}));
    let mut other = whole.clone();
    other["Message"] = json!("a");
    other["MessageId"] = json!("b\nMessageId\nc");
    let text = |message: &Value| {
        let message = serde_json::from_value::<Message>(message.clone()).unwrap();
        message.signed_text()
    };
    assert_eq!(text(&whole), text(&other));
    assert!(edge.take(&whole.to_string()).is_ok());
    let expected = (400, "MessageId: expected a text of one line".to_owned());
    assert_eq!(edge.refusal(&other), expected);
}

#[test]
fn a_token_cannot_make_another_request_of_a_confirmation() {
    let edge = Setup::new();
    let mut subscription = parsed(SUBSCRIPTION_1);
    subscription["Token"] = json!("1&Action=DeleteTopic");
    let refused = (403, "Token: expected letters and digits".to_owned());
    assert_eq!(edge.refusal(&signed(subscription)), refused);
    assert!(edge.asked.lock().unwrap().tokens.is_empty());
}

#[test]
fn where_sns_is_out_of_reach_messages_can_be_sent_again_and_strangers_cannot_hurry_it() {
    for answer in [0, 408, 429, 500] {
        let edge = Setup::with(Err(answer));
        for file in [FILE, "SimpleNotificationService-other.pem"] {
            let (status, reason) = edge.refusal(&certified_by(file));
            assert_eq!(status, 503, "{answer}: {reason}");
        }
        assert_eq!(edge.files(), 1, "it is not asked twice in a second");
    }
}

#[test]
fn a_certificate_that_sns_does_not_have_is_asked_for_once() {
    let no_certificate = "expected a certificate of SNS";
    for (answer, why) in [
        (Err(403), "status 403"),
        (Err(404), "status 404"),
        (Ok("no certificate".to_owned()), no_certificate),
    ] {
        let edge = Setup::with(answer);
        let expected = (403, format!("SigningCertURL: {FILE}: {why}"));
        assert_eq!(edge.refusal(&parsed(NOTIFICATION_1)), expected);
        assert_eq!(edge.refusal(&parsed(NOTIFICATION_2)), expected);
        assert_eq!(edge.files(), 1);
    }
}

#[test]
fn messages_with_invented_certificates_do_not_hold_up_genuine_ones() {
    let edge = Setup::with_files(|file| match file {
        FILE => Ok(certificate(KEY, |_| {})),
        _ => Err(404),
    });
    // More forged messages than are remembered, one after the other, in front of the first genuine message.
    for number in 0..1_100 {
        let (status, reason) = edge.refusal(&invented(number));
        assert_eq!(status, 403, "{reason}");
    }
    assert!(edge.take(NOTIFICATION_2).is_ok());
}

#[test]
fn a_genuine_message_is_taken_while_certificates_of_forged_ones_are_fetched() {
    let fetching = Arc::new(Barrier::new(8));
    let taken = Arc::new(Barrier::new(8));
    let edge = Setup::with_files({
        let (fetching, taken) = (Arc::clone(&fetching), Arc::clone(&taken));
        move |file| {
            if file == FILE {
                return Ok(certificate(KEY, |_| {}));
            }
            fetching.wait();
            taken.wait();
            Err(404)
        }
    });
    std::thread::scope(|scope| {
        for number in 0..7 {
            let edge = &edge;
            scope.spawn(move || edge.refusal(&invented(number)));
        }
        fetching.wait();
        let genuine = edge.take(NOTIFICATION_2);
        taken.wait();
        assert!(genuine.is_ok(), "{genuine:?}");
    });
    assert_eq!(edge.files(), 8);
}

#[test]
fn fetches_for_forged_messages_are_bounded_and_never_hold_up_a_known_key() {
    let fetching = Arc::new(Barrier::new(9));
    let done = Arc::new(Barrier::new(9));
    let edge = Setup::with_files({
        let (fetching, done) = (Arc::clone(&fetching), Arc::clone(&done));
        move |file| {
            if file == FILE {
                return Ok(certificate(KEY, |_| {}));
            }
            fetching.wait();
            done.wait();
            Err(404)
        }
    });
    assert!(edge.take(NOTIFICATION_2).is_ok());
    std::thread::scope(|scope| {
        for number in 0..8 {
            let edge = &edge;
            scope.spawn(move || edge.refusal(&invented(number)));
        }
        fetching.wait();
        let ninth = edge.refusal(&invented(8));
        let genuine = edge.take(NOTIFICATION_2);
        done.wait();
        let later = "SigningCertURL: not fetched now; send it again";
        assert_eq!(ninth, (503, later.to_owned()));
        assert!(genuine.is_ok(), "{genuine:?}");
    });
}

#[test]
fn no_error_tells_a_token() {
    let edge = Setup::new();
    let token = parsed(SUBSCRIPTION_1)["Token"].as_str().unwrap().to_owned();
    for (field, value) in [
        ("Message", json!("x")),
        ("TopicArn", json!("x")),
        ("Timestamp", json!("x")),
        ("SigningCertURL", json!("x")),
        ("Signature", json!("x")),
        ("MessageId", json!("x\n")),
        ("SubscribeURL", json!(null)),
        ("Type", json!(null)),
    ] {
        let mut message = parsed(SUBSCRIPTION_1);
        message[field] = value;
        let (_, reason) = edge.refusal(&message);
        assert!(!reason.contains(&token), "{field}: {reason}");
    }
}

proptest! {
    #[test]
    fn nothing_that_strangers_send_panics_or_is_taken(
        body in any::<Vec<u8>>(),
        field in "TopicArn|Timestamp|SigningCertURL|Signature|MessageId|Subject|Message|SignatureVersion",
        text in "\\PC{0,300}|(?s).{0,40}|https://sns\\.eu-central-1\\.amazonaws\\.com/\\PC{0,80}",
    ) {
        let edge = Setup::new();
        prop_assert!(edge.verifier.verify(&body, now()).is_err());
        let mut message = changed(json!({field: text}));
        message["Unsigned"] = json!(true);
        let Err(refusal) = edge.take(&message.to_string()) else {
            return Err(TestCaseError::fail("taken"));
        };
        prop_assert!(matches!(refusal.status.as_u16(), 400 | 403), "{refusal:?}");
        prop_assert!(edge.asked.lock().unwrap().files.iter().all(|file| file.len() < 200));
    }
}
