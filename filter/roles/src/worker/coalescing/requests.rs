// SPDX-License-Identifier: Apache-2.0
//! The requests of EDGE whose clients are still connected. ORIGIN and the waiting lists read them.

use std::rc::Rc;

use sluice_core::workers::{Millis, NumberMap, StreamId};

use crate::request::{EdgeRequest, OriginReport};

/// The open requests of a worker.
#[derive(Debug, Default)]
pub struct OpenRequests {
    requests: NumberMap<StreamId, Rc<EdgeRequest>>,
}

impl OpenRequests {
    /// Adds a request, or replaces its record.
    pub fn open(&mut self, request: &Rc<EdgeRequest>) {
        self.requests.insert(request.id, Rc::clone(request));
    }

    /// Removes a request whose client has left or has its response.
    pub fn close(&mut self, id: StreamId) -> Option<Rc<EdgeRequest>> {
        self.requests.remove(&id)
    }

    /// Returns a request while its client is connected.
    pub fn get(&self, id: StreamId) -> Option<Rc<EdgeRequest>> {
        self.requests.get(&id).cloned()
    }

    /// Notes for the access log that the origin is asked on behalf of a request.
    pub fn note_question(&self, id: StreamId, now: Millis) {
        if let Some(request) = self.requests.get(&id) {
            request.progress.account.asks(now);
        }
    }

    /// Notes for the access log that the origin has begun to answer a request.
    pub fn note_answer(&self, id: StreamId, now: Millis) {
        if let Some(request) = self.requests.get(&id) {
            request.progress.account.is_answered(now);
        }
    }

    /// Notes that the stored response expired while the request was on its way to the store, and is served
    /// nevertheless.
    pub fn note_late(&self, id: StreamId) {
        if let Some(request) = self.requests.get(&id) {
            request.progress.report.set(OriginReport::Late);
        }
    }

    /// Notes the status with which the origin has failed a request that is served a stale response. `own` says that the
    /// request's own headers may be the cause.
    pub fn note_failure(&self, id: StreamId, status: u16, own: bool) {
        if let Some(request) = self.requests.get(&id) {
            let report = OriginReport::Failed { status, own };
            request.progress.report.set(report);
        }
    }
}
