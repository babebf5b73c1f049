// SPDX-License-Identifier: Apache-2.0
//! Amazon SNS in one region: messages signed with RSA, and the HTTPS endpoint with the certificate. An edge reaches
//! the endpoint through the HTTP proxy in front of it.

use crate::edge::Builder;
use crate::http::message::Wire;
use crate::server::Server;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// The topic whose messages edges accept.
pub const TOPIC: &str = "arn:aws:sns:eu-test-1:123456789012:site";
/// Host of SNS in the topic's region.
const HOST: &str = "sns.eu-test-1.amazonaws.com";
/// The token of a confirmation.
pub const TOKEN: &str = "2336412f37fb687f5d51e6e241d09c805a5a57b30d712f794cc5f6a988666d92";
const FILE: &str = "/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem";
/// The key with which SNS signs.
const KEY: &str = include_str!("../../envoy/src/sns/testdata/signing.key");

/// SNS; it ends when dropped.
pub struct Sns {
    server: Server,
    /// The CA that edges trust.
    folder: TempDir,
    requests: Arc<Mutex<Vec<String>>>,
}

/// Makes a CA.
fn authority() -> (Issuer<'static, KeyPair>, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).unwrap().pem();
    (Issuer::new(params, key), pem)
}

fn acceptor(authority: &Issuer<'static, KeyPair>, host: &str) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([host.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

impl Sns {
    /// Starts SNS.
    #[must_use]
    pub fn start() -> Self {
        let (trusted, roots) = authority();
        Self::serving(acceptor(&trusted, HOST), &roots)
    }

    /// Starts an impostor with a certificate for SNS's name from an unknown CA.
    #[must_use]
    pub fn of_an_unknown_authority() -> Self {
        let (_, roots) = authority();
        Self::serving(acceptor(&authority().0, HOST), &roots)
    }

    /// Starts an impostor with a valid certificate for another name.
    #[must_use]
    pub fn of_another_name() -> Self {
        let (trusted, roots) = authority();
        Self::serving(acceptor(&trusted, "sns.eu-test-2.amazonaws.com"), &roots)
    }

    fn serving(acceptor: TlsAcceptor, roots: &str) -> Self {
        let folder = TempDir::with_prefix("sluice-sns-").unwrap();
        std::fs::write(folder.path().join("roots.pem"), roots).unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let certificate = signing_certificate();
        let server = Server::start("sns", move |stream, _| {
            let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
            let certificate = certificate.clone();
            async move { tunnel(stream, &acceptor, &seen, &certificate).await }
        });
        Self {
            server,
            folder,
            requests,
        }
    }

    /// Address of the proxy in front of it.
    #[must_use]
    pub const fn proxy(&self) -> SocketAddr {
        self.server.address()
    }

    /// Lets `edge` accept messages of [`TOPIC`].
    pub fn open(&self, edge: Builder) -> Builder {
        let roots = self.folder.path().join("roots.pem");
        edge.env("SLUICE_SNS_TOPICS", TOPIC)
            .env("SLUICE_SNS_PROXY", format!("http://{}", self.proxy()))
            .env("SSL_CERT_FILE", roots.display().to_string())
    }

    /// The requests to the proxy and to SNS, in order: `CONNECT HOST:PORT`, `GET /PATH`.
    ///
    /// # Panics
    /// When a connection's task has panicked.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Closes the port, for good.
    pub async fn go_away(&self) {
        self.server.set_listening(false).await;
    }
}

/// The certificate of the key with which SNS signs.
fn signing_certificate() -> String {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "sns.amazonaws.com");
    let key = KeyPair::from_pem(KEY).unwrap();
    params.self_signed(&key).unwrap().pem()
}

/// Serves one CONNECT, and the requests inside.
async fn tunnel(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    seen: &Mutex<Vec<String>>,
    certificate: &str,
) -> io::Result<()> {
    let mut wire = Wire::new(stream);
    let Some(head) = wire.head().await? else {
        return Ok(());
    };
    note(seen, &head.start);
    let mut stream = wire.into_inner();
    stream
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .await?;
    let stream = acceptor.accept(stream).await?;
    answer(stream, seen, certificate).await
}

fn note(seen: &Mutex<Vec<String>>, start: &str) {
    let words: Vec<_> = start.split(' ').take(2).collect();
    seen.lock().unwrap().push(words.join(" "));
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    seen: &Mutex<Vec<String>>,
    certificate: &str,
) -> io::Result<()> {
    let (read, mut write) = tokio::io::split(stream);
    let mut wire = Wire::new(read);
    while let Some(head) = wire.head().await? {
        note(seen, &head.start);
        let (status, body) = match head.word(1) {
            FILE => (200, certificate),
            path if path.starts_with("/?Action=ConfirmSubscription&") => {
                (200, "<ConfirmSubscriptionResponse/>")
            }
            _ => (404, ""),
        };
        let length = body.len();
        let text = format!("HTTP/1.1 {status} Played\r\ncontent-length: {length}\r\n\r\n{body}");
        write.write_all(text.as_bytes()).await?;
    }
    Ok(())
}

/// A notification of an S3 event in its record form, not signed yet.
#[must_use]
pub fn notification(bucket: &str, key: &str) -> Value {
    let record = json!({"eventSource": "aws:s3", "eventName": "ObjectCreated:Put",
        "s3": {"bucket": {"name": bucket}, "object": {"key": key}}});
    let event = json!({"Records": [record]}).to_string();
    message(json!({"Type": "Notification", "Subject": "Amazon S3 Notification", "Message": event}))
}

/// A confirmation of a subscription, not signed yet.
#[must_use]
pub fn subscription() -> Value {
    let url = format!("https://{HOST}/?Action=ConfirmSubscription&TopicArn={TOPIC}&Token={TOKEN}");
    message(
        json!({"Type": "SubscriptionConfirmation", "Token": TOKEN, "SubscribeURL": url,
                   "Message": "You have chosen to subscribe to the topic."}),
    )
}

fn message(fields: Value) -> Value {
    let mut message = fields;
    message["MessageId"] = json!("22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324");
    message["TopicArn"] = json!(TOPIC);
    message["Timestamp"] = json!(timestamp(SystemTime::now()));
    message["SigningCertURL"] = json!(format!("https://{HOST}{FILE}"));
    message
}

/// Formats a time as SNS does.
#[must_use]
pub fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap();
    let time = jiff::Timestamp::from_millisecond(i64::try_from(since.as_millis()).unwrap());
    format!("{:.3}", time.unwrap())
}

/// Adds SNS's signature of version 2 to the message.
///
/// # Panics
/// When a field is missing.
#[must_use]
pub fn signed(mut message: Value) -> Value {
    let fields = match message["Type"].as_str().unwrap() {
        "Notification" => &[
            "Message",
            "MessageId",
            "Subject",
            "Timestamp",
            "TopicArn",
            "Type",
        ][..],
        _ => &[
            "Message",
            "MessageId",
            "SubscribeURL",
            "Timestamp",
            "Token",
            "TopicArn",
            "Type",
        ],
    };
    let text: String = fields
        .iter()
        .map(|name| format!("{name}\n{}\n", message[name].as_str().unwrap()))
        .collect();
    let key = PrivatePkcs8KeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let key = RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()).unwrap();
    let mut signature = vec![0; key.public().modulus_len()];
    let random = ring::rand::SystemRandom::new();
    key.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature)
        .unwrap();
    let signature = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, signature);
    message["Signature"] = json!(signature);
    message["SignatureVersion"] = json!("2");
    message
}
