// SPDX-License-Identifier: Apache-2.0
//! The servers of an HTTP origin that has several, and their health checks.

use crate::origin::Endpoint;

/// The servers of an HTTP origin beside its first one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Servers {
    /// The other servers, which speak the same protocol as the first one.
    pub others: Vec<Endpoint>,
    /// The path that each server answers with 200 while it is healthy; `None`: only failed requests tell.
    pub health_check: Option<String>,
}

/// The first server of an HTTP origin, and the others.
pub type ReadServers = (Endpoint, Vec<Endpoint>);

/// Reads the servers of an HTTP origin: the first one, and the others.
///
/// # Errors
/// A server that cannot be used with the others, and the accepted ones.
pub fn read_servers<'a>(
    texts: impl Iterator<Item = &'a str>,
) -> Result<Option<ReadServers>, (String, &'static str)> {
    let mut servers = Vec::new();
    for text in texts {
        let server = Endpoint::parse(text).ok_or_else(|| (text.to_owned(), EXPECTED_SERVER))?;
        servers.push((text, server));
    }
    let is_alone = servers.len() < 2;
    let tls = servers.first().is_some_and(|(_, server)| server.tls);
    for (text, server) in &servers {
        if server.tls != tls {
            return Err(((*text).to_owned(), EXPECTED_SAME));
        }
        if tls && !is_alone && server.ip().is_some() {
            return Err(((*text).to_owned(), EXPECTED_NAME));
        }
    }
    let mut servers = servers.into_iter().map(|(_, server)| server);
    Ok(servers.next().map(|first| (first, servers.collect())))
}

/// Whether a text is the path of a health check.
pub fn is_health_check(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The description of one of several servers.
pub const EXPECTED_SERVER: &str = "http://HOST[:PORT] or https://HOST[:PORT]";
/// The description of the texts that [`is_health_check`] accepts.
pub const EXPECTED_HEALTH_CHECK: &str = "a path of visible ASCII characters, such as /healthz";
const EXPECTED_SAME: &str = "all servers with http://, or all with https://";
const EXPECTED_NAME: &str =
    "a name, because several servers with https:// are told apart by their names";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Result<usize, (String, &'static str)> {
        let servers = read_servers(texts.iter().copied())?;
        Ok(servers.map_or(0, |(_, others)| 1 + others.len()))
    }

    #[test]
    fn the_servers_of_an_origin_speak_one_protocol() {
        assert_eq!(read(&[]), Ok(0));
        assert_eq!(read(&["https://127.0.0.1"]), Ok(1));
        assert_eq!(read(&["http://a.test", "http://127.0.0.1:8000"]), Ok(2));
        assert_eq!(read(&["https://a.test", "https://b.test"]), Ok(2));
        for (texts, wrong, expected) in [
            (
                ["http://a.test", "https://b.test"],
                "https://b.test",
                EXPECTED_SAME,
            ),
            (
                ["https://a.test", "https://127.0.0.1"],
                "https://127.0.0.1",
                EXPECTED_NAME,
            ),
            (["http://a.test", "s3://b"], "s3://b", EXPECTED_SERVER),
        ] {
            assert_eq!(read(&texts), Err((wrong.to_owned(), expected)));
        }
    }

    #[test]
    fn a_health_check_is_a_path() {
        assert!(is_health_check("/healthz?full=1"));
        for text in ["", "healthz", "/a b", "/\u{e4}", "/a\n"] {
            assert!(!is_health_check(text), "{text:?}");
        }
    }
}
