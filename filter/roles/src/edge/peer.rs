// SPDX-License-Identifier: Apache-2.0
//! Requests at the port for peers: an edge in front of this one has received them from clients. It has neither checked
//! nor answered them.

use sluice_core::host::HostError;
use sluice_core::internal_headers::{INTERNAL_PREFIX, PEER_HEADER, PEER_REFUSED_HEADER};
use sluice_core::policy::purge::TokenHash;

use super::{Edge, Refusal};
use sluice_host::headers::{Headers, serialize_fields};
use sluice_host::{self as host, Host, Map};

impl Edge {
    /// The same request, at the port for peers.
    #[must_use]
    pub fn for_peers(self) -> Self {
        Self {
            is_at_peers_port: true,
            ..self
        }
    }

    /// Refuses a request without the secret of the peers. Removes the headers that the peer has added, and returns the
    /// headers that the client has sent.
    pub(super) fn admit_peer(
        &self,
        host: &dyn Host,
        headers: &Headers,
    ) -> Result<Headers, Refusal> {
        let secret = self.generation.sites.edge.peers.secret;
        let shown = headers.get(PEER_HEADER);
        let shown = shown.map(|shown| TokenHash::of(shown.bytes()));
        if !secret
            .zip(shown)
            .is_some_and(|(secret, shown)| secret.is(shown))
        {
            return Err(Refusal::NoPeer);
        }
        Ok(of_client(host, headers)?)
    }
}

/// Removes the filter's own headers from the effective context's request. Returns the others.
fn of_client(host: &dyn Host, headers: &Headers) -> Result<Headers, HostError> {
    let own = headers.iter();
    let own = own.filter(|(name, _)| name.starts_with(INTERNAL_PREFIX));
    let mut removed = Vec::new();
    for (name, _) in own {
        if !removed.contains(&name) {
            host.remove_header(Map::Request, name)?;
            removed.push(name);
        }
    }
    let is_others = |name: &[u8]| !name.starts_with(INTERNAL_PREFIX.as_bytes());
    let others = headers.fields().filter(|(name, _)| is_others(name));
    Ok(Headers::new(serialize_fields(others)))
}

/// Answers the effective context's request, which no peer has sent. An edge with another secret asks elsewhere.
pub(super) fn answer_stranger(host: &dyn Host) -> host::Result<()> {
    let headers = [
        ("content-type", "text/plain; charset=utf-8"),
        ("cache-control", "no-store"),
        (PEER_REFUSED_HEADER, "1"),
    ];
    host.respond(403, "sluice_no_peer", &headers, "This port is for peers.\n")
}
