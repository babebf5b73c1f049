// SPDX-License-Identifier: Apache-2.0
//! Requests at the port for peers: an edge in front of this one has received them from clients. It has neither checked
//! nor answered them.

use sluice_core::host::HostError;
use sluice_core::internal_headers::{
    FRONTS_PURGES_HEADER, INTERNAL_PREFIX, PEER_HEADER, PEER_REFUSED_HEADER, PURGES_HEADER,
};
use sluice_core::key::CanonicalTarget;
use sluice_core::policy::purge::TokenHash;
use sluice_core::purge::{AppliedPurges, FeedPosition};

use super::request::headers::strip_internal;
use super::{Edge, Refusal};
use crate::worker::Worker;
use crate::worker::keys::Keys;
use sluice_host::headers::{Headers, serialize_fields};
use sluice_host::{self as host, Host, Map};

/// Envoy's property with the name of a request's route.
const ROUTE_NAME: &str = "xds\0route_name";
/// Beginning of the names of the routes of the requests that an edge handles because no peer can.
const OWN_ROUTE: &[u8] = b"own";

impl Edge {
    /// Marks the request as one at the port for peers.
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
    ) -> Result<(Headers, Option<AppliedPurges>), Refusal> {
        let secret = self.generation.sites.edge.peers.secret;
        let shown = headers.get(PEER_HEADER);
        let shown = shown.map(|shown| TokenHash::of(shown.bytes()));
        if !secret
            .zip(shown)
            .is_some_and(|(secret, shown)| secret.is(shown))
        {
            return Err(Refusal::NoPeer);
        }
        let purges = purges_in(headers, PURGES_HEADER);
        Ok((of_client(host, headers)?, purges))
    }

    /// Takes the purges that FRONT has applied which has sent the request, if the policy says that there is a FRONT.
    pub(super) fn hear_front(
        &mut self,
        host: &dyn Host,
        headers: &Headers,
    ) -> Result<(), HostError> {
        if !self.is_behind_front() || !headers.has(FRONTS_PURGES_HEADER) {
            return Ok(());
        }
        self.peers_purges = purges_in(headers, FRONTS_PURGES_HEADER);
        host.remove_header(Map::Request, FRONTS_PURGES_HEADER)
    }

    /// Whether FRONT has sent the request, in this process or in another one.
    fn is_behind_front(&self) -> bool {
        self.is_at_peers_port || self.generation.sites.edge.peers.behind_front
    }

    /// Whether the peer which has sent the request, or another one, has applied purges that this edge lacks.
    pub(super) fn lacks_purges(&self, worker: &mut Worker, target: &CanonicalTarget) -> bool {
        // A peer that tells nothing has applied nothing.
        let none = self.is_at_peers_port.then(AppliedPurges::default);
        let Some(sent) = self.peers_purges.or(none) else {
            return false;
        };
        worker.keys.join_roster();
        if let Some(told) = sent.feed {
            worker.hear_of_feed(told);
        }
        let keys = &worker.keys;
        let own = AppliedPurges::of(keys.feed_position(), &self.policy.policy, target);
        keys.lacks_lines() || !own.suffice_for(&sent)
    }

    /// Refuses a request, so that its sender asks another edge. No other edge is left for one that its sender handles,
    /// and FRONT of another proxy asks none.
    pub(super) fn check_elsewhere(&self, host: &dyn Host) -> Result<(), Refusal> {
        let route = host.property(ROUTE_NAME)?.unwrap_or_default();
        match route.starts_with(OWN_ROUTE) || !self.is_at_peers_port {
            true => Ok(()),
            false => Err(Refusal::LacksPurges),
        }
    }

    /// Tells the sender of a peer's request how far the edge has read the purge feed.
    pub(super) fn tell_purges(&self, host: &dyn Host, keys: &Keys) {
        if let Some(position) = keys.feed_position().filter(|_| self.is_behind_front()) {
            // The host has no headers of a response that is answered in a later turn.
            let _ = host.set_header(Map::Response, PURGES_HEADER, position.to_string());
        }
    }
}

/// The applied purges that the header of this name tells.
fn purges_in(headers: &Headers, name: &str) -> Option<AppliedPurges> {
    AppliedPurges::parse(headers.get(name)?.text().ok()?)
}

/// Removes the filter's own headers from the effective context's request. Returns the others.
fn of_client(host: &dyn Host, headers: &Headers) -> Result<Headers, HostError> {
    strip_internal(host, headers)?;
    let is_others = |name: &[u8]| !name.starts_with(INTERNAL_PREFIX.as_bytes());
    let others = headers.fields().filter(|(name, _)| is_others(name));
    Ok(Headers::new(serialize_fields(others)))
}

/// Answers the effective context's request, whose sender asks elsewhere.
pub(super) fn send_elsewhere(host: &dyn Host) -> host::Result<()> {
    let headers = [("cache-control", "no-store"), (PEER_REFUSED_HEADER, "1")];
    host.respond(503, "sluice_lacks_purges", &headers, "")
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

/// Notes how far the peer that has answered has read the purge feed, and removes the header with the position.
pub fn hear_of_feed(host: &dyn Host, worker: &mut Worker) -> host::Result<()> {
    let Some(told) = host.header(Map::Response, PURGES_HEADER)? else {
        return Ok(());
    };
    let position = std::str::from_utf8(&told);
    if let Some(position) = position.ok().and_then(FeedPosition::parse) {
        worker.hear_of_feed(position);
    }
    host.remove_header(Map::Response, PURGES_HEADER)
}
