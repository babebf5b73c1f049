// SPDX-License-Identifier: Apache-2.0
//! Slices of edges with peers. The edge that makes a client's response requests each slice from the peer that owns the
//! slice, and the owner handles it like the slicer's request for a slice.

use std::rc::Rc;

use sluice_core::http::caching::client_control::ClientDemand;
use sluice_core::internal_headers::{
    KEY_HEADER, LARGE_HEADER, SLICE_STATE_HEADER, SLICE_VERSION_HEADER,
};
use sluice_core::slices::asked::SliceState;
use sluice_core::slices::peer_slice::PeerSlice;
use sluice_core::slices::selection::Selection;
use sluice_store::LINK_HEADER;

use super::peer::hear_of_feed;
use super::response::sliced::note_slice;
use super::{Edge, Refusal, State};
use crate::request::headers::{avoid_the_store, set_aside};
use crate::request::sliced::{RequestedSlice, SlicedResponse};
use crate::worker::Worker;
use crate::worker::own_requests::indexes;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Action, Host, Map};

impl Edge {
    /// Whether slices are requested from peers.
    pub(super) fn has_peers(&self) -> bool {
        self.generation.sites.edge.peers.secret.is_some()
    }

    /// Sends the slicer's request for a slice to the peers, around this edge's cache. The route sends it to the owner.
    pub(super) fn ask_peer(
        &mut self,
        host: &dyn Host,
        sliced: Rc<SlicedResponse>,
        number: u64,
    ) -> Result<Action, Refusal> {
        let grid = sliced.plan.grid();
        let asked = PeerSlice::new(&sliced.target, number, grid, sliced.index.etag());
        let slice = RequestedSlice::new(sliced, number);
        slice.request().ok_or(Refusal::Stranger)?;
        host.remove_header(Map::Request, LINK_HEADER)?;
        host.set_header(Map::Request, KEY_HEADER, asked.key())?;
        host.set_header(Map::Request, SLICE_VERSION_HEADER, asked.version())?;
        avoid_the_store(host, false)?;
        self.state = State::SentToPeer(Rc::new(slice));
        Ok(Action::Continue)
    }

    /// Handles a peer's request for a slice of the object that the peer knows in that version. The peer has `sent` some
    /// of the headers itself, and it has admitted the client. A slice never means other bytes, so the purges that the
    /// peer has applied do not matter.
    pub(super) fn receive_peers_slice(
        &mut self,
        worker: &mut Worker,
        sent: &Headers,
        headers: &Headers,
    ) -> Result<Action, Refusal> {
        let asked = requested_slice(sent).ok_or(Refusal::NoPeer)?;
        self.is_slicers = true;
        let site = self.generation.sites.index_of_key(asked.key());
        self.turn_to_site(site.ok_or(Refusal::NoPeer)?)?;
        let policy = &self.policy.policy;
        let mut target = asked.target(policy).ok_or(Refusal::NoPeer)?;
        worker.keys.qualify_generation(policy, &mut target);
        asked.qualify(&mut target);
        let index = asked.index(&policy.edge.slices).ok_or(Refusal::NoPeer)?;
        let secret = &self.identity.store_secret;
        let plan = index.plan(Selection::Whole, secret, policy.edge.slices.bytes, 0);
        let plan = plan.ok_or(Refusal::NoPeer)?;
        set_aside(&*worker.host, headers)?;
        let object = worker.keys.object_hash(target.cache_key());
        let (target, index) = (Rc::new(target), Rc::new(index));
        let sliced = SlicedResponse::new(self.id, object, target, index, plan, None);
        let (sliced, number) = (Rc::new(sliced), asked.number());
        let stream = self.slice_request(&worker.keys, sliced, number, headers)?;
        self.admit(worker, stream, &ClientDemand::Shared)
    }

    /// Handles a peer's response to the request for a slice.
    pub(super) fn respond_to_slicer(
        &self,
        worker: &mut Worker,
        slice: &RequestedSlice,
    ) -> host::Result<Action> {
        let host = Rc::clone(&worker.host);
        hear_of_feed(&*host, worker)?;
        let state = worker.host.header(Map::Response, SLICE_STATE_HEADER)?;
        let state = state.and_then(|state| SliceState::parse(std::str::from_utf8(&state).ok()?));
        match state {
            Some(state) if state.is_outdated() => {
                slice.becomes(state);
                let (slices, roots) = (&mut worker.slices, &mut worker.roots);
                let (keys, calls) = (&worker.keys, &mut worker.calls);
                indexes::replace(keys, slices, roots, calls, &slice.of, &self.policy);
            }
            Some(state) => slice.arrives_as(state),
            None => {}
        }
        note_slice(&*worker.host, slice)?;
        Ok(Action::Continue)
    }

    /// Tells the sender of a peer's request that the object is served in slices.
    pub(super) fn tell_large(&self, host: &dyn Host) -> host::Result<()> {
        match self.is_at_peers_port {
            true => host.set_header(Map::Response, LARGE_HEADER, "1"),
            false => Ok(()),
        }
    }
}

/// The slice that a peer's request with these headers is for. `None` if they are malformed.
fn requested_slice(headers: &Headers) -> Option<PeerSlice> {
    let text = |name| headers.get(name).and_then(|value| value.text().ok());
    PeerSlice::parse(text(KEY_HEADER)?, text(SLICE_VERSION_HEADER)?)
}
