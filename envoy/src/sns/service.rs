// SPDX-License-Identifier: Apache-2.0
//! What is asked of SNS itself, over HTTPS.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring::default_provider;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Proxy};

use super::topic::Topic;
use crate::origin::Endpoint;

/// What SNS answers is small.
const MOST_BYTES: u64 = 64 << 10;
/// SNS waits for 15 seconds for the answer to its message.
const PATIENCE: Duration = Duration::from_secs(8);

/// Why SNS has not given what it was asked for.
#[derive(Debug)]
pub enum NoService {
    /// It cannot be reached, or is not who it says; asking again may help.
    Unreachable(String),
    /// It answered with this status.
    Status(u16),
}

impl fmt::Display for NoService {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(reason) => out.write_str(reason),
            Self::Status(status) => write!(out, "status {status}"),
        }
    }
}

/// SNS in the regions of the listed topics.
pub trait Service: Send + Sync {
    /// The bytes of a certificate's file, in the region of `topic`.
    ///
    /// # Errors
    /// There is none now.
    fn certificate(&self, topic: &Topic, file: &str) -> Result<Vec<u8>, NoService>;

    /// Confirms the subscription to `topic` that `token` stands for.
    ///
    /// # Errors
    /// It is not confirmed.
    fn confirm(&self, topic: &Topic, token: &str) -> Result<(), NoService>;
}

/// SNS, over connections that are verified against a list of CAs.
#[derive(Debug)]
pub struct Https {
    agent: Agent,
}

impl Https {
    /// A client that trusts the CA certificates in the file `roots`, PEM.
    ///
    /// # Errors
    /// The file cannot be read, or has no certificate.
    pub fn new(roots: &Path, proxy: Option<&Endpoint>) -> io::Result<Self> {
        let roots: Vec<_> = parse_pem(&std::fs::read(roots)?)
            .filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            })
            .collect();
        if roots.is_empty() {
            let reason = "expected CA certificates in PEM";
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::Specific(Arc::new(roots)))
            .unversioned_rustls_crypto_provider(Arc::new(default_provider()));
        let proxy = proxy.map(|proxy| Proxy::new(&proxy.to_string()));
        let config = Agent::config_builder()
            .tls_config(tls.build())
            .https_only(true)
            .http_status_as_error(false)
            .max_redirects(0)
            // NB: not from variables that are made for other programs.
            .proxy(proxy.transpose().map_err(io::Error::other)?)
            .timeout_global(Some(PATIENCE));
        Ok(Self {
            agent: Agent::new_with_config(config.build()),
        })
    }

    /// The body of a 200.
    fn get(&self, url: &str) -> Result<Vec<u8>, NoService> {
        // NB: what ureq says of a URL that it can read does not repeat it, and it may have a token.
        let unreachable = |error: ureq::Error| NoService::Unreachable(error.to_string());
        let mut response = self.agent.get(url).call().map_err(unreachable)?;
        if response.status() != 200 {
            return Err(NoService::Status(response.status().as_u16()));
        }
        let body = response.body_mut().with_config().limit(MOST_BYTES);
        body.read_to_vec().map_err(unreachable)
    }
}

impl Service for Https {
    fn certificate(&self, topic: &Topic, file: &str) -> Result<Vec<u8>, NoService> {
        self.get(&format!("https://{}/{file}", topic.host()))
    }

    fn confirm(&self, topic: &Topic, token: &str) -> Result<(), NoService> {
        let (host, arn) = (topic.host(), topic.arn());
        // NB: neither a topic's name nor a token has a character that means something in a URL; see the verifier.
        let query = format!("Action=ConfirmSubscription&TopicArn={arn}&Token={token}");
        self.get(&format!("https://{host}/?{query}")).map(drop)
    }
}
