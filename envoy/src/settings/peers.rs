// SPDX-License-Identifier: Apache-2.0
//! The peers: edges that are one cache together.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use sluice_core::policy::purge::TokenHash;

use super::environment::Environment;
use super::secrets::FileSecrets;
use crate::origin::Endpoint;
use crate::sites::{ACCEPTED_TOKEN, hash_of_token};

/// The setting with the names of the peers.
const PEERS: &str = "SLUICE_PEERS";
/// The setting with their secret. Envoy has it as a variable of this name.
pub const SECRET: &str = "SLUICE_PEER_SECRET";
/// Upper bound of the number of peers. Envoy looks up each name every few seconds.
const MOST: usize = 256;

/// The edges that are one cache together, and this edge's port for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peers {
    /// The peers, this edge among them: at least two, each with another name or port.
    pub names: Vec<Endpoint>,
    /// The address of the listener for peers.
    pub address: SocketAddr,
    /// The hash of the secret that each request of a peer carries.
    pub secret: TokenHash,
}

impl Peers {
    /// Reads `SLUICE_PEERS` and `SLUICE_PEER_…`. `None`: there is a problem. Envoy's secret is added to `secrets`.
    pub fn read(env: &mut Environment<'_>, secrets: &mut FileSecrets) -> Option<Option<Self>> {
        let address = env.socket_address("SLUICE_PEER_BIND", "SLUICE_PEER_PORT");
        let secret = env.secret(SECRET);
        let Some(text) = env.set(PEERS) else {
            if secret.is_some() {
                env.refuse(SECRET, None, "must be unset, or SLUICE_PEERS be set");
                return None;
            }
            return address.map(|_| None);
        };
        let names = read_names(&text).map_err(|expected| env.refuse(PEERS, Some(text), expected));
        let hash = secret
            .as_ref()
            .and_then(|secret| hash_of_token(&secret.text));
        match (&secret, hash) {
            (None, _) => env.refuse(SECRET, None, "must be set, as SLUICE_PEERS is"),
            (Some(_), None) => env.refuse(SECRET, None, ACCEPTED_TOKEN),
            (Some(secret), Some(_)) => secrets.add(SECRET, secret.text.clone()),
        }
        Some(Some(Self {
            names: names.ok()?,
            address: address?,
            secret: hash?,
        }))
    }
}

/// Reads the names of the peers. The error says what is expected.
fn read_names(text: &str) -> Result<Vec<Endpoint>, String> {
    let form = || {
        "NAME:PORT of each edge, separated by commas, where NAME may have a range such as edge-{0..9}"
            .to_owned()
    };
    let mut names = Vec::new();
    for entry in text.split(',') {
        for name in expand(entry.trim()).ok_or_else(form)? {
            if names.len() == MOST {
                return Err(format!("at most {MOST} edges"));
            }
            names.push(endpoint(&name).ok_or_else(form)?);
        }
    }
    let mut known = BTreeSet::new();
    let mut twins = names
        .iter()
        .filter(|name| !known.insert((&name.host, name.port)));
    if let Some(twin) = twins.next() {
        let name = twin.authority();
        return Err(format!("a name for each edge: {name} is there twice"));
    }
    match names.len() {
        0 | 1 => Err(
            "the names of two edges or more: a name that several edges share gives none of them its own keys"
                .to_owned(),
        ),
        _ => Ok(names),
    }
}

/// The names that an entry stands for: `edge-{0..2}` is `edge-0`, `edge-1` and `edge-2`. `None`: the range has no form
/// that is accepted.
fn expand(entry: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = entry.split_once('{') else {
        return Some(vec![entry.to_owned()]);
    };
    let (range, behind) = rest.split_once('}')?;
    let (first, last) = range.split_once("..")?;
    let number = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|_| digits)
    };
    let (first, last) = (number(first)?, number(last)?);
    // One more than the bound, so that the error names the bound.
    let numbers = (first..=last).take(MOST + 1);
    let names: Vec<_> = numbers
        .map(|number| format!("{before}{number}{behind}"))
        .collect();
    (!names.is_empty()).then_some(names)
}

/// Reads `NAME:PORT`. A name that ends in a dot keeps it, so that the resolver does not try it with a search domain.
fn endpoint(text: &str) -> Option<Endpoint> {
    let (name, port) = text.rsplit_once(':')?;
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let complete = name.strip_suffix('.');
    let name = complete.unwrap_or(name);
    let mut endpoint = Endpoint::parse(&format!("http://{name}:{port}"))?;
    if complete.is_some() {
        if endpoint.ip().is_some() {
            return None;
        }
        endpoint.host.push('.');
    }
    Some(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Result<Vec<String>, String> {
        let names = read_names(text)?;
        Ok(names
            .iter()
            .map(|name| format!("{}:{}", name.host, name.port))
            .collect())
    }

    #[test]
    fn peers_are_names_with_ports_and_ranges_of_names() {
        for (text, expected) in [
            ("a:1,b:2", &["a:1", "b:2"][..]),
            (
                "edge-{0..2}.edges.ns.svc:8082",
                &[
                    "edge-0.edges.ns.svc:8082",
                    "edge-1.edges.ns.svc:8082",
                    "edge-2.edges.ns.svc:8082",
                ],
            ),
            (
                "{9..10}.test:80, 10.0.0.1:80",
                &["9.test:80", "10.test:80", "10.0.0.1:80"],
            ),
            (
                "[fd00::1]:8082,[fd00::2]:8082",
                &["fd00::1:8082", "fd00::2:8082"],
            ),
            ("edge:8082,edge:8083", &["edge:8082", "edge:8083"]),
            ("edge-{0..1}.test.:1", &["edge-0.test.:1", "edge-1.test.:1"]),
        ] {
            assert_eq!(names(text).unwrap(), expected, "{text}");
        }
        assert_eq!(names("e{1..256}:1").unwrap().len(), 256);
    }

    #[test]
    fn a_name_for_several_edges_is_refused_and_so_is_every_other_form() {
        for (text, expected) in [
            ("edges.ns.svc:8082", "the names of two edges or more"),
            ("edge-{3..3}:8082", "the names of two edges or more"),
            (
                "edge:8082,b:1,EDGE:8082",
                "a name for each edge: edge:8082 is there twice",
            ),
            ("e{0..256}:1", "at most 256 edges"),
            ("e{0..4294967295}:1", "at most 256 edges"),
            ("a,b", "NAME:PORT of each edge"),
            ("a:1,", "NAME:PORT of each edge"),
            ("a:1,b:0", "NAME:PORT of each edge"),
            ("a:1,b:65536", "NAME:PORT of each edge"),
            ("a:1,b:1/", "NAME:PORT of each edge"),
            ("a:1,b..:1", "NAME:PORT of each edge"),
            ("a:1,.:1", "NAME:PORT of each edge"),
            ("a:1,10.0.0.1.:1", "NAME:PORT of each edge"),
            ("a:1,b c:1", "NAME:PORT of each edge"),
            ("http://a:1,b:1", "NAME:PORT of each edge"),
            ("e{2..1}:1", "NAME:PORT of each edge"),
            ("e{1-2}:1", "NAME:PORT of each edge"),
            ("e{1..2:1", "NAME:PORT of each edge"),
            ("e{1..2}-{1..2}:1", "NAME:PORT of each edge"),
            ("e{+1..2}:1", "NAME:PORT of each edge"),
        ] {
            let found = names(text).unwrap_err();
            assert!(found.starts_with(expected), "{text}: {found}");
        }
    }
}
