// SPDX-License-Identifier: Apache-2.0
//! The requests behind a response in slices: the slicer's requests for slices, and the filter's questions for the headers
//! of an object that may be sliced.

use std::rc::Rc;

use sluice_core::admission::RequestFacts;
use sluice_core::coalescing::NextStep;
use sluice_core::freshness::UncacheableReason;
use sluice_core::http::caching::client_control::ClientDemand;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::internal_headers::SLICE_HEADER;
use sluice_core::key::{CanonicalTarget, qualifiers};
use sluice_core::metrics::Metric;
use sluice_core::slices::asked::AskedSlice;
use sluice_core::slices::index::SliceVersion;
use sluice_store::Link;

use super::headers::set_target;
use crate::edge::first_byte::FirstByteTimer;
use crate::edge::{Edge, Refusal, State};
use crate::request::EdgeRequest;
use crate::request::headers::may_share;
use crate::request::sliced::{RequestedSlice, SlicedResponse};
use crate::worker::Worker;
use crate::worker::waking::resumption;
use sluice_host::headers::Headers;
use sluice_host::{Action, Map};

impl Edge {
    /// Handles a question for the headers of an object like a client's HEAD for them.
    pub(super) fn receive_index(
        &mut self,
        worker: &mut Worker,
        link: Link,
        headers: &Headers,
    ) -> Result<Action, Refusal> {
        let call = worker.calls.get(link.stream).ok_or(Refusal::Stranger)?;
        let (target, policy) = (call.target.for_headers(), call.policy);
        self.aim_at(worker, &target, headers)?;
        let key = worker.keys.flight_key(&target);
        let cache_key = target.cache_key();
        let object = worker.keys.object_hash(target.whole_key());
        if worker.slices.is_outdated(object) {
            worker.turn(self.id.0, |coalescer, _| {
                coalescer.hints().forget(key.key);
            });
        }
        let may_share = may_share(&policy.policy, cache_key, headers);
        let own_headers = self
            .identity
            .own_headers(&policy.policy, cache_key, headers);
        let stream = EdgeRequest {
            own_headers,
            may_share,
            may_lead: may_share,
            counts: false,
            ..EdgeRequest::new(self.id, key, Rc::new(target), policy, true)
        };
        self.admit_own(worker, stream)
    }

    /// Handles the slicer's request for a slice, or for the whole object if that has changed.
    pub(super) fn receive_slice(
        &mut self,
        worker: &mut Worker,
        link: Link,
        headers: &Headers,
    ) -> Result<Action, Refusal> {
        self.is_slicers = true;
        let client = worker.requests.get(link.stream);
        let client = client.ok_or(Refusal::Stranger)?;
        let sliced = client.progress.sliced.borrow().clone();
        let sliced = sliced.ok_or(Refusal::Stranger)?;
        let asked = headers.get(SLICE_HEADER).map(FieldValue::text);
        let asked = asked.and_then(|asked| AskedSlice::parse(asked.ok()?));
        worker.host.remove_header(Map::Request, SLICE_HEADER)?;
        match asked.ok_or(Refusal::Stranger)? {
            AskedSlice::Number(number) => {
                self.receive_number(worker, &client, sliced, number, headers)
            }
            AskedSlice::Whole => self.receive_whole(worker, &client, &sliced, headers),
        }
    }

    /// Handles a request for a slice like that of a client, under the key of the slice.
    fn receive_number(
        &mut self,
        worker: &mut Worker,
        client: &EdgeRequest,
        sliced: Rc<SlicedResponse>,
        number: u64,
        headers: &Headers,
    ) -> Result<Action, Refusal> {
        let secret = &self.identity.store_secret;
        let size = sliced.plan.grid().slice_bytes();
        let version = SliceVersion::new(secret, sliced.index.etag(), size);
        let mut target = CanonicalTarget::clone(&client.target);
        target.qualify(qualifiers::SLICE, format!("{number}.{version}"));
        self.aim_at(worker, &target, headers)?;
        let slice = RequestedSlice::new(sliced, number);
        slice.request().ok_or(Refusal::Stranger)?;
        let key = worker.keys.flight_key(&target);
        let policy = client.policy.clone();
        let stream = EdgeRequest {
            slice: Some(Rc::new(slice)),
            counts: false,
            ..EdgeRequest::new(self.id, key, Rc::new(target), policy, false)
        };
        self.admit_own(worker, stream)
    }

    /// Sends a request for the whole object around the store, with the demand of the client.
    fn receive_whole(
        &mut self,
        worker: &mut Worker,
        client: &EdgeRequest,
        sliced: &SlicedResponse,
        headers: &Headers,
    ) -> Result<Action, Refusal> {
        sliced.passes.set(true);
        worker
            .metrics
            .count_of(&client.policy, Metric::SlicedPassed);
        self.aim_at(worker, &client.target, headers)?;
        let (target, policy) = (Rc::clone(&client.target), client.policy.clone());
        let stream = Rc::new(EdgeRequest {
            demand: client.demand.clone(),
            ..EdgeRequest::new(self.id, client.key, target, policy, false)
        });
        worker.requests.open(&stream);
        let step = NextStep::HitForMiss(UncacheableReason::TooLarge);
        resumption::send(worker, &stream, step)?;
        self.state = State::Cached(stream);
        Ok(Action::Continue)
    }

    /// Has the coalescer decide on a request of the filter. Its first byte is not that of a client's response.
    fn admit_own(&mut self, worker: &mut Worker, stream: EdgeRequest) -> Result<Action, Refusal> {
        let action = self.admit(worker, stream, &ClientDemand::Shared);
        self.first_byte = FirstByteTimer::Off;
        action
    }

    /// Sets the target of a request of the filter.
    fn aim_at(
        &self,
        worker: &Worker,
        target: &CanonicalTarget,
        headers: &Headers,
    ) -> Result<(), Refusal> {
        let facts = RequestFacts::of(&self.policy.policy, headers.fields(), true);
        let path = self.identity.store_path(target);
        let authority = target.authority();
        set_target(&*worker.host, headers, &facts.target, authority, &path)?;
        Ok(())
    }
}
