// SPDX-License-Identifier: Apache-2.0
//! Verifies that a message is new and from SNS, and that it belongs to a listed topic.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
/// Bound on the certificates that are fetched at one time. It is half of the number of messages that Envoy has
/// verified at one time (`clusters.yaml.j2`), so that messages with a known key always pass. It is far more than
/// genuine messages need, so that they find room beside forged ones with invented certificates.
const MOST_FETCHES: usize = 8;
/// The pause after SNS could not be reached.
const PAUSE: Duration = Duration::from_secs(1);
/// Bound on the URLs that are remembered because they have no certificate of SNS.
const MOST_REFUSED: usize = 1_024;
/// Time for which such URLs are remembered. It is shorter than the 20 seconds after which SNS sends a message
/// again, so that no message is lost if its certificate appears late.
const REFUSED_FOR: Duration = Duration::from_secs(10);
/// Bound on the characters of a value in an error.
const SHOWN: usize = 128;

/// Verifies messages of SNS.
pub struct Verifier {
    topics: Vec<Topic>,
    service: Service,
    /// The known certificates, by URL.
    certificates: Mutex<Certificates>,
    /// The certificates that are being fetched.
    fetches: AtomicUsize,
}

/// The known certificates, by URL.
#[derive(Default)]
struct Certificates {
    /// The keys in certificates of SNS.
    keys: HashMap<String, Arc<SigningKey>>,
    /// URLs without a certificate of SNS: the refusal, and the time at which it was noted.
    refused: HashMap<String, (Refusal, Instant)>,
    /// The last time at which SNS could not be reached.
    unreachable: Option<Instant>,
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
            certificates: Mutex::default(),
            fetches: AtomicUsize::new(0),
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

    /// Makes the checks that need no key: the message is new, and belongs to a listed topic. Returns the topic.
    fn admit(&self, message: &Message, now: Timestamp) -> Result<&Topic, Refusal> {
        let arn = &message.topic_arn;
        let topic = self.topics.iter().find(|topic| topic.arn == *arn);
        let topic = topic.ok_or_else(|| {
            let shown = shortened(arn);
            Refusal::forbidden(format!(
                "TopicArn: {shown}: expected one of SLUICE_SNS_TOPICS"
            ))
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

    /// The key of a certificate. The certificate is fetched from SNS once.
    fn key(&self, topic: &Topic, file: &str) -> Result<Arc<SigningKey>, Refusal> {
        let url = format!("https://{}/{file}", topic.host);
        if let Some(known) = self.certificates().known(&url) {
            return known;
        }
        let _fetch = Fetch::begin(&self.fetches).ok_or_else(later)?;
        let fetched = self.fetch_key(topic, &url);
        let fetched = fetched.map_err(|refusal| refusal.within(&format!("SigningCertURL: {file}")));
        self.certificates().note(url, fetched)
    }

    fn certificates(&self) -> MutexGuard<'_, Certificates> {
        let certificates = self.certificates.lock();
        certificates.unwrap_or_else(PoisonError::into_inner)
    }

    fn fetch_key(&self, topic: &Topic, url: &str) -> Result<SigningKey, Refusal> {
        let pem = (self.service)(url)?;
        let key = SigningKey::from_pem(&pem, topic);
        key.ok_or_else(|| Refusal::forbidden("expected a certificate of SNS"))
    }

    /// Confirms a subscription. NB: at a URL that is built here; the `SubscribeURL` of the message is never used.
    fn confirm(&self, topic: &Topic, token: &str) -> Result<(), Refusal> {
        if !token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(Refusal::forbidden("Token: expected letters and digits"));
        }
        let (host, arn) = (&topic.host, &topic.arn);
        // NB: neither a topic's name nor a token has a character with a special meaning in URLs.
        let query = format!("Action=ConfirmSubscription&TopicArn={arn}&Token={token}");
        let confirmed = (self.service)(&format!("https://{host}/?{query}")).map(drop);
        confirmed.map_err(|refusal| refusal.within("the subscription is not confirmed"))
    }
}

impl Certificates {
    /// The known key at `url`, or the reason why it is unavailable now. `None`: the certificate must be fetched.
    fn known(&self, url: &str) -> Option<Result<Arc<SigningKey>, Refusal>> {
        if let Some(key) = self.keys.get(url) {
            return Some(Ok(Arc::clone(key)));
        }
        let refused = self.refused.get(url);
        if let Some((refusal, _)) = refused.filter(|(_, since)| since.elapsed() < REFUSED_FOR) {
            return Some(Err(refusal.clone()));
        }
        let pauses = self.unreachable.is_some_and(|at| at.elapsed() < PAUSE);
        pauses.then(|| Err(later()))
    }

    /// Notes an answer of SNS, and returns it.
    fn note(
        &mut self,
        url: String,
        fetched: Result<SigningKey, Refusal>,
    ) -> Result<Arc<SigningKey>, Refusal> {
        let refusal = match fetched {
            Ok(key) => {
                let key = Arc::new(key);
                if self.keys.len() >= MOST_KEYS {
                    self.keys.clear();
                }
                self.keys.insert(url, Arc::clone(&key));
                return Ok(key);
            }
            Err(refusal) => refusal,
        };
        if refusal.may_pass() {
            self.unreachable = Some(Instant::now());
        } else {
            if self.refused.len() >= MOST_REFUSED {
                self.refused.clear();
            }
            self.refused.insert(url, (refusal.clone(), Instant::now()));
        }
        Err(refusal)
    }
}

/// The certificate cannot be fetched now.
fn later() -> Refusal {
    Refusal::unavailable("SigningCertURL: not fetched now; send it again")
}

/// A certificate that is being fetched. The count falls when this is dropped.
struct Fetch<'a>(&'a AtomicUsize);

impl<'a> Fetch<'a> {
    fn begin(count: &'a AtomicUsize) -> Option<Self> {
        let fetch = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < MOST_FETCHES).then_some(fetch)
    }
}

impl Drop for Fetch<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A text for an error: quoted, and shortened if it is long.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
    }
}
