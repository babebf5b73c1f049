// SPDX-License-Identifier: Apache-2.0
//! The address of a collector of traces.

use std::fmt;

use crate::origin::Endpoint;

/// The path of traces below a collector's URL (OpenTelemetry protocol, OTLP/HTTP).
const TRACES: &str = "/v1/traces";

/// A collector of traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// The collector's server.
    pub server: Endpoint,
    /// The path of requests with traces.
    pub path: String,
}

impl Collector {
    /// The texts that [`Collector::parse`] accepts, for error messages.
    pub const ACCEPTED: &str = "http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]";

    /// Reads the URL of a collector, which is the part of the URL of its traces in front of `/v1/traces`.
    pub fn parse(text: &str) -> Option<Self> {
        let start = text.find("://")? + "://".len();
        let end = text.get(start..)?.find('/').map(|at| start + at);
        let (server, path) = text.split_at(end.unwrap_or(text.len()));
        let path = path.trim_end_matches('/');
        let fits =
            |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@%".contains(&byte);
        Some(Self {
            server: Endpoint::parse(server)?,
            path: path.bytes().all(fits).then(|| format!("{path}{TRACES}"))?,
        })
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.server, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_have_a_path_below_that_of_the_collector() {
        for (text, traces) in [
            ("http://a:4318", "http://a:4318/v1/traces"),
            ("http://a:4318/", "http://a:4318/v1/traces"),
            ("https://a/otlp", "https://a/otlp/v1/traces"),
            (
                "https://[::1]:1/a/b%20c/",
                "https://[::1]:1/a/b%20c/v1/traces",
            ),
        ] {
            assert_eq!(Collector::parse(text).unwrap().to_string(), traces);
        }
        for text in [
            "",
            "a:4318",
            "grpc://a:4317",
            "http:///a",
            "http://a/b?c",
            "http://a/b c",
            "http://a/b#c",
        ] {
            assert_eq!(Collector::parse(text), None, "{text}");
        }
    }
}
