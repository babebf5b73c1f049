// SPDX-License-Identifier: Apache-2.0
//! The clients of the few HTTP requests that the entry point makes.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring::default_provider;
use ureq::Agent;
use ureq::config::Config;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// Bound on a request to a remote server.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client for loopback and the edge itself, with short timeouts and without a proxy. A status is never an error.
pub fn client() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .timeout_global(Some(Duration::from_secs(10)))
        .timeout_connect(Some(Duration::from_secs(1)));
    Agent::new_with_config(config.build())
}

/// A client for other servers, without a proxy. Neither a status nor a redirect is an error. `roots` is a file with
/// the CA certificates, in PEM.
///
/// # Errors
/// The file cannot be read, or has no certificate.
pub fn client_of_servers(roots: Option<&Path>) -> io::Result<Agent> {
    Ok(Agent::new_with_config(config_of_servers(roots, PATIENCE)?))
}

/// The configuration of such a client, for requests that take at most `patience`.
///
/// # Errors
/// The file cannot be read, or has no certificate.
pub fn config_of_servers(roots: Option<&Path>, patience: Duration) -> io::Result<Config> {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .timeout_global(Some(patience))
        .timeout_connect(Some(Duration::from_secs(5)));
    let config = match roots {
        Some(roots) => config.tls_config(trust(roots)?),
        None => config,
    };
    Ok(config.build())
}

/// TLS that trusts the CA certificates in the file `roots`, in PEM.
///
/// # Errors
/// The file cannot be read, or has no certificate.
pub fn trust(roots: &Path) -> io::Result<TlsConfig> {
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
    Ok(tls.build())
}
