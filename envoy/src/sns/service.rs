// SPDX-License-Identifier: Apache-2.0
//! The requests to SNS itself, over HTTPS.

use std::io;
use std::path::Path;
use std::time::Duration;

use ureq::{Agent, Proxy};

use super::refusal::Refusal;
use crate::net::http::trust;
use crate::origin::Endpoint;

/// Bound on an answer of SNS in bytes. Answers are small.
const MOST_BYTES: u64 = 64 << 10;
/// Bound on the time of a request. SNS waits 15 seconds for the answer to its message.
const PATIENCE: Duration = Duration::from_secs(8);

/// Number of idle connections to SNS that are kept, so that a request needs no handshake.
const IDLE_CONNECTIONS: usize = 8;

/// Gets a URL of SNS, and returns the body of a response with status 200. Any other answer is a refusal.
pub type Service = Box<dyn Fn(&str) -> Result<Vec<u8>, Refusal> + Send + Sync>;

/// SNS over HTTPS, verified by the CA certificates in the file `roots`, in PEM.
///
/// # Errors
/// The file cannot be read, or has no certificate.
pub fn over_https(roots: &Path, proxy: Option<&Endpoint>) -> io::Result<Service> {
    let proxy = proxy.map(|proxy| Proxy::new(&proxy.to_string()));
    let config = Agent::config_builder()
        .tls_config(trust(roots)?)
        .https_only(true)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_idle_connections_per_host(IDLE_CONNECTIONS)
        // NB: only the settings name the proxy, not the variables for other programs.
        .proxy(proxy.transpose().map_err(io::Error::other)?)
        .timeout_global(Some(PATIENCE));
    let agent = Agent::new_with_config(config.build());
    Ok(Box::new(move |url| get(&agent, url)))
}

fn get(agent: &Agent, url: &str) -> Result<Vec<u8>, Refusal> {
    // NB: the URL may have a token; the error of ureq does not repeat a URL that it could parse.
    let unreachable = |error: ureq::Error| Refusal::unavailable(error.to_string());
    let mut response = agent.get(url).call().map_err(unreachable)?;
    if response.status() != 200 {
        return Err(Refusal::of_answer(response.status()));
    }
    let body = response.body_mut().with_config().limit(MOST_BYTES);
    body.read_to_vec().map_err(unreachable)
}
