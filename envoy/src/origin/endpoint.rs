// SPDX-License-Identifier: Apache-2.0
//! The address of a server: scheme, host and port.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether connections to the server use TLS.
    pub tls: bool,
    /// A host name, or an IP address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Endpoint {
    /// Reads `http://HOST[:PORT]` or `https://HOST[:PORT]`.
    pub fn parse(text: &str) -> Option<Self> {
        let (tls, rest) = match text.split_once("://")? {
            ("https", rest) => (true, rest),
            ("http", rest) => (false, rest),
            _ => return None,
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match authority.rsplit_once(':') {
            // The last colon of an IPv6 address without a port does not separate a port.
            Some((host, port)) if !port.ends_with(']') => (host, parse_port(port)?),
            _ => (authority, default_port(tls)),
        };
        let host = match host.strip_prefix('[') {
            Some(ip) => ip
                .strip_suffix(']')
                .filter(|ip| ip.parse::<Ipv6Addr>().is_ok())?,
            None => is_host_name(host).then_some(host)?,
        };
        Some(Self {
            tls,
            host: host.to_ascii_lowercase(),
            port,
        })
    }

    /// The host as an IP address, if it is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// The value of `Host` in requests to this server (RFC 9110, section 7.2).
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        if self.port == default_port(self.tls) {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(out, "{scheme}://{}", self.authority())
    }
}

fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

/// Reads a port from 1 to 65535; `None`: the text is not a port.
fn parse_port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0)
}

fn is_host_name(host: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.len() <= 253 && host.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_a_scheme_a_host_and_perhaps_a_port() {
        for (text, tls, host, port, authority) in [
            (
                "http://127.0.0.1:9000",
                false,
                "127.0.0.1",
                9000,
                "127.0.0.1:9000",
            ),
            (
                "http://example.com",
                false,
                "example.com",
                80,
                "example.com",
            ),
            (
                "https://Example.com/",
                true,
                "example.com",
                443,
                "example.com",
            ),
            ("https://[::1]:8443", true, "::1", 8443, "[::1]:8443"),
            (
                "http://minio_1:9000",
                false,
                "minio_1",
                9000,
                "minio_1:9000",
            ),
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!(
                (endpoint.tls, endpoint.host.as_str(), endpoint.port),
                (tls, host, port),
                "{text}"
            );
            assert_eq!(endpoint.authority(), authority, "{text}");
        }
    }

    #[test]
    fn odd_endpoints_are_refused() {
        for text in [
            "",
            "example.com",
            "ftp://example.com",
            "http://",
            "http://example.com/path",
            "http://user@example.com",
            "http://example.com:0",
            "http://example.com:65536",
            "http://example.com:+80",
            "http://example.com:",
            "http://::1",
            "http://[::1",
            "http://[::1]8080",
            "http://[example]",
            "http://a..b",
            "http://-a",
            "http://a b",
            "http://a\"b",
            "http://a?x",
        ] {
            assert_eq!(Endpoint::parse(text), None, "{text}");
        }
    }
}
