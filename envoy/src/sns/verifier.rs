// SPDX-License-Identifier: Apache-2.0
//! Whether a message is SNS's own, from a listed topic, and new.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use super::certificate::{SigningKey, file_of};
use super::message::{Kind, Message};
use super::service::{NoService, Service};
use super::topic::Topic;

/// Messages older than this are refused: SNS gives up a delivery after an hour.
const OLDEST_SECONDS: i64 = 3_600;
/// How much the clock of SNS may be ahead.
const AHEAD_SECONDS: i64 = 300;
/// Certificates that are remembered. SNS changes them once in a year or so.
const MOST_KEYS: usize = 32;
/// Messages that may wait for a certificate; a stranger's invented ones must not hold those whose key is known.
const MOST_WAITING: usize = 4;
/// After SNS has not given a certificate, it is not asked for another so soon.
const PAUSE: Duration = Duration::from_secs(1);
/// Bytes of a value that an error shows.
const SHOWN: usize = 128;

/// What a good message comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verified {
    /// This was published.
    Notification(String),
    /// The subscription to this topic is confirmed.
    Subscribed(String),
    /// The subscription to this topic has ended.
    Unsubscribed(String),
}

/// Why nothing is done for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// 400: it is none of SNS's. 403: it is not admitted. 503: it can be sent again.
    pub status: u16,
    /// What is wrong with it, without anything secret.
    pub reason: String,
}

impl Refusal {
    fn new(status: u16, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { status, reason }
    }
}

/// What it takes to verify messages.
pub struct Verifier {
    topics: Vec<Topic>,
    service: Box<dyn Service>,
    /// By host and file. None is here that SNS has not given.
    keys: Mutex<HashMap<String, Arc<SigningKey>>>,
    /// When SNS last gave no certificate; held while it is asked for one.
    asking: Mutex<Option<Instant>>,
    waiting: AtomicUsize,
}

impl Verifier {
    /// One that takes messages of `topics`.
    pub fn new(topics: Vec<Topic>, service: Box<dyn Service>) -> Self {
        Self {
            topics,
            service,
            keys: Mutex::default(),
            asking: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Verifies what was posted, at the time `now`, and confirms a subscription that is asked for.
    ///
    /// # Errors
    /// The message is refused, or cannot be verified now.
    pub fn take(&self, body: &[u8], now: Timestamp) -> Result<Verified, Refusal> {
        let message = Message::parse(body).map_err(|reason| Refusal::new(400, reason))?;
        let topic = self.admitted(&message, now)?;
        self.check_signature(&message, topic, now)?;
        let arn = topic.arn().to_owned();
        match (message.kind, message.token) {
            (Kind::Notification, _) => Ok(Verified::Notification(message.message)),
            (Kind::UnsubscribeConfirmation, _) => Ok(Verified::Unsubscribed(arn)),
            (Kind::SubscriptionConfirmation, token) => {
                self.confirm(topic, &token.unwrap_or_default())?;
                Ok(Verified::Subscribed(arn))
            }
        }
    }

    /// What can be said before anything is fetched: the message is of a listed topic, and new.
    fn admitted(&self, message: &Message, now: Timestamp) -> Result<&Topic, Refusal> {
        let arn = &message.topic_arn;
        let topic = self.topics.iter().find(|topic| topic.arn() == arn);
        let topic = topic.ok_or_else(|| {
            let shown = shortened(arn);
            Refusal::new(
                403,
                format!("TopicArn: {shown}: expected one of SNS_TOPICS"),
            )
        })?;
        let time = message.time().map_err(|reason| Refusal::new(400, reason))?;
        let age = now.as_second() - time.as_second();
        if !(-AHEAD_SECONDS..=OLDEST_SECONDS).contains(&age) {
            let shown = &message.timestamp;
            let reason = format!("Timestamp: {shown:?}: expected a time within the last hour");
            return Err(Refusal::new(403, reason));
        }
        Ok(topic)
    }

    fn check_signature(
        &self,
        message: &Message,
        topic: &Topic,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let url = &message.signing_cert_url;
        let file = file_of(url, topic).ok_or_else(|| {
            let (shown, host) = (shortened(url), topic.host());
            let accepted = format!("https://{host}/SimpleNotificationService-….pem");
            Refusal::new(403, format!("SigningCertURL: {shown}: expected {accepted}"))
        })?;
        let bad = || Refusal::new(403, "Signature: expected that of SNS over this message");
        let signature = STANDARD.decode(&message.signature).map_err(|_| bad())?;
        let key = self.key(topic, file)?;
        if !key.is_valid_at(now.as_second()) {
            let reason = format!("SigningCertURL: {file} is not valid now");
            return Err(Refusal::new(403, reason));
        }
        let signed = key.has_signed(
            &message.signed_text(),
            message.signature_version,
            &signature,
        );
        signed.then_some(()).ok_or_else(bad)
    }

    /// The key of a certificate, which SNS is asked for once.
    fn key(&self, topic: &Topic, file: &str) -> Result<Arc<SigningKey>, Refusal> {
        let name = format!("{}/{file}", topic.host());
        if let Some(key) = self.known_key(&name) {
            return Ok(key);
        }
        let later = || Refusal::new(503, "SigningCertURL: not fetched now; send it again");
        let _waiting = Waiting::begin(&self.waiting).ok_or_else(later)?;
        let mut failed = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = self.known_key(&name) {
            return Ok(key);
        }
        if failed.is_some_and(|at| at.elapsed() < PAUSE) {
            return Err(later());
        }
        let given = self.service.certificate(topic, file).map_err(|error| {
            *failed = Some(Instant::now());
            let status = match error {
                NoService::Status(400..=499) => 403,
                NoService::Status(_) | NoService::Unreachable(_) => 503,
            };
            Refusal::new(status, format!("SigningCertURL: {file}: {error}"))
        })?;
        let key = SigningKey::of_pem(&given, topic).map(Arc::new);
        let key = key.ok_or_else(|| {
            *failed = Some(Instant::now());
            Refusal::new(
                403,
                format!("SigningCertURL: {file} is no certificate of SNS"),
            )
        })?;
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.len() >= MOST_KEYS {
            keys.clear();
        }
        keys.insert(name, Arc::clone(&key));
        Ok(key)
    }

    fn known_key(&self, name: &str) -> Option<Arc<SigningKey>> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.get(name).cloned()
    }

    /// NB: the URL is made here rather than taken from the message; that SNS has signed that one is not needed.
    fn confirm(&self, topic: &Topic, token: &str) -> Result<(), Refusal> {
        if !token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(Refusal::new(403, "Token: expected letters and digits"));
        }
        self.service.confirm(topic, token).map_err(|error| {
            let status = match error {
                NoService::Status(400..=499) => 403,
                NoService::Status(_) | NoService::Unreachable(_) => 503,
            };
            Refusal::new(
                status,
                format!("the subscription is not confirmed: {error}"),
            )
        })
    }
}

/// One more that waits for a certificate, until this is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(count: &'a AtomicUsize) -> Option<Self> {
        let waiting = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < MOST_WAITING).then_some(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A text for an error: quoted, and not longer than one can read.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
    }
}
