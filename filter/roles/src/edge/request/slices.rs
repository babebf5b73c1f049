// SPDX-License-Identifier: Apache-2.0
//! The requests behind a response in slices: the slicer's requests for slices, and the filter's questions for the headers
//! of an object that may be sliced.

use std::rc::Rc;

use sluice_core::admission::RequestFacts;
use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::http::caching::client_control::ClientDemand;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::internal_headers::SLICE_HEADER;
use sluice_core::key::{CanonicalTarget, qualifiers};
use sluice_core::slices::asked::AskedSlice;
use sluice_core::slices::index::SliceVersion;
use sluice_store::Link;

use super::go_on;
use super::headers::set_target;
use crate::edge::{Edge, Refusal};
use crate::request::EdgeRequest;
use crate::request::headers::may_share;
use crate::request::sliced::{RequestedSlice, SlicedResponse};
use crate::worker::Worker;
use crate::worker::coalescing::Coalescing;
use crate::worker::keys::Keys;
use crate::worker::own_requests::calls::BackgroundCall;
use crate::worker::own_requests::indexes::Approach;
use crate::worker::slices::KnownObjects;
use crate::worker::waking::resumption;
use sluice_host::headers::Headers;
use sluice_host::{Action, Host, Map};

impl Edge {
    /// A question for the headers of an object, which is handled like a client's HEAD for them.
    pub(super) fn index_request(
        &self,
        keys: &Keys,
        slices: &KnownObjects,
        coalescing: &mut Coalescing,
        call: BackgroundCall,
        headers: &Headers,
    ) -> Result<EdgeRequest, Refusal> {
        let (target, policy) = (call.target.for_headers(), call.policy);
        self.aim_at(&*keys.host, &target, headers)?;
        let key = keys.flight_key(&target);
        let cache_key = target.cache_key();
        let object = keys.object_hash(target.whole_key());
        if slices.is_outdated(object) {
            coalescing.turn(|coalescer, _| {
                coalescer.hints().forget(key.key);
            });
        }
        let may_share = may_share(&policy.policy, cache_key, headers);
        let own_headers = self
            .identity
            .own_headers(&policy.policy, cache_key, headers);
        Ok(EdgeRequest {
            own_headers,
            may_share,
            may_lead: may_share,
            counts: false,
            ..EdgeRequest::new(self.id, key, Rc::new(target), policy, true)
        })
    }

    /// Handles the slicer's request for a slice, or the client's request again if its object has changed.
    pub(super) fn receive_slice(
        &mut self,
        worker: &mut Worker,
        link: Link,
        headers: &Headers,
    ) -> Result<Action, Refusal> {
        self.is_slicers = true;
        let client = worker.coalescing.requests.get(link.stream);
        let client = client.ok_or(Refusal::Stranger)?;
        let sliced = client.progress.sliced.borrow().clone();
        let sliced = sliced.ok_or(Refusal::Stranger)?;
        let asked = headers.get(SLICE_HEADER).map(FieldValue::text);
        let asked = asked.and_then(|asked| AskedSlice::parse(asked.ok()?));
        worker.host.remove_header(Map::Request, SLICE_HEADER)?;
        match asked.ok_or(Refusal::Stranger)? {
            AskedSlice::Number(number) if self.has_peers() => {
                self.ask_peer(&*worker.host, sliced, number)
            }
            AskedSlice::Number(number) => {
                let stream = self.slice_request(&worker.keys, sliced, number, headers)?;
                self.admit(worker, stream, &ClientDemand::Shared)
            }
            AskedSlice::Again => self.receive_again(worker, &client, &sliced, headers),
        }
    }

    /// Sends a request to the slicer, or makes it wait, if its object is served in slices. `None`: it goes on like any
    /// request.
    pub(super) fn approach_slices(
        &self,
        worker: &mut Worker,
        stream: &EdgeRequest,
    ) -> Result<Option<Action>, Refusal> {
        let approach = resumption::approach(worker, stream);
        worker.roots.restore(self.id.0);
        match approach {
            Approach::Whole => Ok(None),
            Approach::Waits => Ok(Some(Action::Pause)),
            Approach::Slices => {
                go_on(worker, stream, Some(NextStep::Send(StoreRequest::Slice))).map(Some)
            }
        }
    }

    /// A request for a slice, which is handled like that of a client, under the key of the slice.
    pub(in crate::edge) fn slice_request(
        &self,
        keys: &Keys,
        sliced: Rc<SlicedResponse>,
        number: u64,
        headers: &Headers,
    ) -> Result<EdgeRequest, Refusal> {
        let secret = &self.identity.store_secret;
        let size = sliced.plan.grid().slice_bytes();
        let version = SliceVersion::new(secret, sliced.index.etag(), size);
        let mut target = CanonicalTarget::clone(&sliced.target);
        target.qualify(qualifiers::SLICE, format!("{number}.{version}"));
        self.aim_at(&*keys.host, &target, headers)?;
        let slice = RequestedSlice::new(sliced, number);
        slice.request().ok_or(Refusal::Stranger)?;
        let key = keys.flight_key(&target);
        let policy = self.policy.clone();
        Ok(EdgeRequest {
            slice: Some(Rc::new(slice)),
            counts: false,
            ..EdgeRequest::new(self.id, key, Rc::new(target), policy, false)
        })
    }

    /// Handles the request of a client again, because its object has changed. The answer is a plan for the object as it
    /// is now, or the response if that is not made of slices.
    fn receive_again(
        &mut self,
        worker: &mut Worker,
        client: &EdgeRequest,
        sliced: &SlicedResponse,
        headers: &Headers,
    ) -> Result<Action, Refusal> {
        sliced.passes.set(true);
        self.aim_at(&*worker.host, &client.target, headers)?;
        self.admit(worker, client.repeated(self.id), &ClientDemand::Shared)
    }

    /// Sets the target of a request of the filter.
    fn aim_at(
        &self,
        host: &dyn Host,
        target: &CanonicalTarget,
        headers: &Headers,
    ) -> Result<(), Refusal> {
        let facts = RequestFacts::of(&self.policy.policy, headers.fields(), true);
        let path = self.identity.store_path(target);
        let authority = target.authority();
        set_target(host, headers, &facts.target, authority, &path)?;
        Ok(())
    }
}

/// [`resumption::yields`] for a request that has just arrived. Afterwards host calls are directed at it again.
pub(super) fn yields(worker: &mut Worker, stream: &EdgeRequest) -> bool {
    let yields = resumption::yields(worker, stream);
    worker.roots.restore(stream.id.0);
    yields
}
