// SPDX-License-Identifier: Apache-2.0
//! Verifies that a message is from SNS, of a listed topic, and new.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use super::Sns;
use super::certificate::{SigningKey, certificate_file};
use super::message::{Message, MessageKind};
use super::refusal::Refusal;
use super::service::{self, Service};
use super::topic::Topic;

/// Messages older than this are refused: SNS gives up a delivery after an hour.
const OLDEST_SECONDS: i64 = 3_600;
/// The clock of SNS may be this much ahead.
const AHEAD_SECONDS: i64 = 300;
/// Bound on the keys that are remembered. SNS changes its certificates about once a year.
const MOST_KEYS: usize = 32;
/// Bound on the messages that wait for a certificate, so that forged ones do not hold up those whose key is known.
const MOST_WAITING: usize = 4;
/// The pause after SNS has failed to give a certificate.
const PAUSE: Duration = Duration::from_secs(1);
/// The characters of a value that an error shows.
const SHOWN: usize = 128;

/// Verifies messages of SNS.
pub struct Verifier {
    topics: Vec<Topic>,
    service: Service,
    /// The keys that SNS has given, by URL.
    keys: Mutex<HashMap<String, Arc<SigningKey>>>,
    /// The time at which SNS last failed to give a certificate; locked during a request for one.
    last_failure: Mutex<Option<Instant>>,
    waiting: AtomicUsize,
}

impl Verifier {
    /// A verifier for `sns`. The CA certificates in the file `roots`, in PEM, verify SNS itself.
    ///
    /// # Errors
    /// The file cannot be read, or has no certificate.
    pub fn over_https(sns: &Sns, roots: &Path) -> io::Result<Self> {
        let service = service::over_https(roots, sns.proxy.as_ref())?;
        Ok(Self::new(sns.topics.clone(), service))
    }

    /// A verifier of messages of `topics`.
    pub(super) fn new(topics: Vec<Topic>, service: Service) -> Self {
        Self {
            topics,
            service,
            keys: Mutex::default(),
            last_failure: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Verifies the `body` that was posted, at the time `now`, and confirms a subscription that it asks for.
    ///
    /// # Errors
    /// The message is refused, or cannot be verified now.
    pub(super) fn verify(&self, body: &[u8], now: Timestamp) -> Result<Message, Refusal> {
        let message = Message::parse(body)?;
        let topic = self.admit(&message, now)?;
        self.check_signature(&message, topic, now)?;
        if message.kind == MessageKind::SubscriptionConfirmation {
            self.confirm(topic, message.token.as_deref().unwrap_or_default())?;
        }
        Ok(message)
    }

    /// The checks that need no key: the message is of a listed topic, and new. Gives the topic.
    fn admit(&self, message: &Message, now: Timestamp) -> Result<&Topic, Refusal> {
        let arn = &message.topic_arn;
        let topic = self.topics.iter().find(|topic| topic.arn == *arn);
        let topic = topic.ok_or_else(|| {
            let shown = shortened(arn);
            Refusal::forbidden(format!("TopicArn: {shown}: expected one of SNS_TOPICS"))
        })?;
        let time = message.time()?;
        let age = now.as_second() - time.as_second();
        if !(-AHEAD_SECONDS..=OLDEST_SECONDS).contains(&age) {
            let shown = &message.timestamp;
            let reason = format!("Timestamp: {shown:?}: expected a time within the last hour");
            return Err(Refusal::forbidden(reason));
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
        let file = certificate_file(url, topic).ok_or_else(|| {
            let (shown, host) = (shortened(url), &topic.host);
            let accepted = format!("https://{host}/SimpleNotificationService-….pem");
            Refusal::forbidden(format!("SigningCertURL: {shown}: expected {accepted}"))
        })?;
        let bad = || Refusal::forbidden("Signature: expected that of SNS over this message");
        let signature = STANDARD.decode(&message.signature).map_err(|_| bad())?;
        let key = self.key(topic, file)?;
        if !key.is_valid_at(now.as_second()) {
            let reason = format!("SigningCertURL: {file} is not valid now");
            return Err(Refusal::forbidden(reason));
        }
        let (text, version) = (message.signed_text(), message.signature_version);
        let signed = key.has_signed(&text, version, &signature);
        signed.then_some(()).ok_or_else(bad)
    }

    /// The key of a certificate, which is fetched from SNS once.
    fn key(&self, topic: &Topic, file: &str) -> Result<Arc<SigningKey>, Refusal> {
        let url = format!("https://{}/{file}", topic.host);
        if let Some(key) = self.known_key(&url) {
            return Ok(key);
        }
        let later = || Refusal::unavailable("SigningCertURL: not fetched now; send it again");
        let _waiter = Waiter::enter(&self.waiting).ok_or_else(later)?;
        let mut failed = self
            .last_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = self.known_key(&url) {
            return Ok(key);
        }
        if failed.is_some_and(|at| at.elapsed() < PAUSE) {
            return Err(later());
        }
        let fetched = self.fetch_key(topic, &url);
        let fetched = fetched.map_err(|refusal| {
            *failed = Some(Instant::now());
            refusal.within(&format!("SigningCertURL: {file}"))
        })?;
        let key = Arc::new(fetched);
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.len() >= MOST_KEYS {
            keys.clear();
        }
        keys.insert(url, Arc::clone(&key));
        Ok(key)
    }

    fn fetch_key(&self, topic: &Topic, url: &str) -> Result<SigningKey, Refusal> {
        let pem = (self.service)(url)?;
        let key = SigningKey::from_pem(&pem, topic);
        key.ok_or_else(|| Refusal::forbidden("expected a certificate of SNS"))
    }

    fn known_key(&self, url: &str) -> Option<Arc<SigningKey>> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.get(url).cloned()
    }

    /// Confirms a subscription. NB: at a URL that is made here; the `SubscribeURL` of the message is never used.
    fn confirm(&self, topic: &Topic, token: &str) -> Result<(), Refusal> {
        if !token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(Refusal::forbidden("Token: expected letters and digits"));
        }
        let (host, arn) = (&topic.host, &topic.arn);
        // NB: neither the name of a topic nor a token has a character with a meaning in URLs.
        let query = format!("Action=ConfirmSubscription&TopicArn={arn}&Token={token}");
        let confirmed = (self.service)(&format!("https://{host}/?{query}")).map(drop);
        confirmed.map_err(|refusal| refusal.within("the subscription is not confirmed"))
    }
}

/// A message that waits for a certificate, until this is dropped.
struct Waiter<'a>(&'a AtomicUsize);

impl<'a> Waiter<'a> {
    fn enter(count: &'a AtomicUsize) -> Option<Self> {
        let waiter = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < MOST_WAITING).then_some(waiter)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A text for an error: quoted, and cut where it is too long to read.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
    }
}
