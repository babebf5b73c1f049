// SPDX-License-Identifier: Apache-2.0
//! Requests of clients, in spellings as odd as clients can send.

use super::Rng;

const HOSTS: [&str; 9] = [
    "a.test",
    "x.a.test",
    "b.a.test",
    "z.a.test",
    "b.test",
    "test",
    "q.test",
    "other.example",
    "[::1]",
];
/// Pieces of paths. Half of them have no special meaning.
const PIECES: [&str; 30] = [
    "/", "/", "/", "/", "/x", "/x", "/x", "/y", "/y", "/xx", "x", "y", "/..", "/..", "/../", "/.",
    "//", "/%78", "/%79", "%2e", "/%2E%2e", "%2F", "%5c", "\\", ";", "/.;", "%C3%A9", "é", "?",
    "%",
];

/// Parts of a request that decide its site.
#[derive(Clone, Debug)]
pub struct SiteRequest {
    /// `:scheme`.
    pub scheme: &'static str,
    /// Name by which the client has chosen a certificate.
    pub server_name: Option<String>,
    /// `:authority`.
    pub authority: String,
    /// `:path`, or the whole target in absolute form.
    pub path: String,
}

impl SiteRequest {
    /// Returns a request for one of the hosts of [`super::Table::random`], or for another host.
    pub fn random(rng: &mut Rng) -> Self {
        Self::among(rng, &HOSTS)
    }

    /// Returns a request for one of these hosts.
    pub fn among(rng: &mut Rng, hosts: &[&str]) -> Self {
        let host = rng.pick(hosts);
        let authority = spelled(rng, host);
        let path = Self::path(rng);
        let path = match rng.below(12) {
            0 => format!("http://{authority}{path}"),
            1 => format!("HTTP://{}{path}", spelled(rng, host)),
            2 => format!("https://{}{path}", rng.pick(hosts)),
            _ => path,
        };
        Self {
            scheme: rng.pick(&["http", "https"]),
            server_name: match rng.below(6) {
                0 | 1 => None,
                2 => Some(rng.pick(hosts).to_owned()),
                _ => Some(host.to_ascii_uppercase()),
            },
            authority,
            path,
        }
    }

    fn path(rng: &mut Rng) -> String {
        let mut path = "/".to_owned();
        for _ in 0..rng.below(8) {
            // Most paths have plain spellings only.
            let known = if rng.one_in(2) { 12 } else { PIECES.len() };
            path.push_str(PIECES[rng.below(known)]);
        }
        if path.starts_with("//") && !rng.one_in(8) {
            path.remove(0);
        }
        path
    }
}

/// Returns a host in one of its spellings, or a text that only resembles a host.
fn spelled(rng: &mut Rng, host: &str) -> String {
    match rng.below(16) {
        0 => host.to_ascii_uppercase(),
        1 => format!("{host}."),
        2 => format!("{host}:80"),
        3 => format!("{host}:443"),
        4 => format!("{}.:8080", host.to_ascii_uppercase()),
        5 => format!("{host}:"),
        6 => rng
            .pick(&[
                "s0!a.test",
                "user@a.test",
                "a.test..",
                ".a.test",
                "%61.test",
                "a.test:0",
                "",
                "[0::1]",
                "a..test",
            ])
            .to_owned(),
        _ => host.to_owned(),
    }
}
