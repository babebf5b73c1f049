// SPDX-License-Identifier: Apache-2.0
//! The record of a client's request, for questions about the last decisions and the heaviest URLs. A request has a
//! record only if requests are recorded at its start.

use crate::worker::coalescing::requests::OpenRequests;
use sluice_core::coalescing::NextStep;
use sluice_core::freshness::UncacheableReason;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::inspection::recordings::decision::Decision;
use sluice_core::inspection::recordings::recorded_url::{RecordedUrl, shortened};
use sluice_core::inspection::recordings::recorder::Recorder;
use sluice_core::key::split_absolute;
use sluice_core::metrics::Metric;
use sluice_core::workers::Millis;

use super::{Edge, State};
use crate::request::EdgeRequest;
use crate::request::account::result_of;
use crate::worker::Worker;
use sluice_host::headers::Headers;
use sluice_host::{Host, Map};

/// The most bytes of a host that are recorded.
const MOST_HOST_BYTES: usize = 255;
/// The most bytes of a method or a request ID that are recorded.
const MOST_WORD_BYTES: usize = 128;

/// The facts about a client's request that EDGE does not keep elsewhere.
#[derive(Debug)]
pub struct RequestRecord {
    began: Millis,
    host: Box<str>,
    method: Box<str>,
    url: RecordedUrl,
    request_id: Option<Box<str>>,
    /// The site, after it is known.
    site: Option<Box<str>>,
    /// The result of a request that has no account.
    result: Option<&'static str>,
    status: Option<u16>,
    /// The time from the start to the headers of the response.
    answered: Option<Millis>,
    /// The bytes of the response's body, unless they are counted with the body.
    bytes: u64,
}

impl RequestRecord {
    fn new(headers: &Headers, now: Millis) -> Self {
        let target = headers.target();
        let absolute = split_absolute(target.path);
        let resource = absolute.map_or(target.path, |(_, _, resource)| resource);
        let authority = FieldValue::new(target.authority).to_string();
        // A host may follow credentials, in a request that is refused for it.
        let host = authority.rsplit('@').next().unwrap_or_default();
        Self {
            began: now,
            host: shortened(host, MOST_HOST_BYTES).into(),
            method: word(headers, ":method").unwrap_or_default(),
            url: RecordedUrl::new(resource),
            request_id: word(headers, "x-request-id"),
            site: None,
            result: None,
            status: None,
            answered: None,
            bytes: 0,
        }
    }

    /// The decision about the request, which ends now.
    fn into_decision(self, at_millis: u64, now: Millis) -> Decision {
        Decision {
            at_millis,
            site: self.site,
            host: self.host,
            method: self.method,
            url: self.url,
            status: self.status,
            result: self.result,
            duration: now.saturating_sub(self.began),
            waited: None,
            origin: None,
            bytes: self.bytes,
            not_stored: None,
            request_id: self.request_id,
        }
    }
}

impl Edge {
    /// Begins the record of a client's request, if requests are recorded.
    pub(super) fn begin_record(&mut self, worker: Option<&Worker>, headers: &Headers) {
        if let Some(worker) = worker.filter(|worker| worker.recorder.is_on()) {
            let now = worker.host.monotonic_millis();
            self.record = Some(Box::new(RequestRecord::new(headers, now)));
        }
    }

    /// Records the site of the request.
    pub(super) fn record_site(&mut self) {
        if let Some(record) = &mut self.record {
            record.site = Some(self.policy.policy.site.name.as_str().into());
        }
    }

    /// Records the result of a request that EDGE answers.
    pub(super) fn record_result(&mut self, result: Metric) {
        if let Some(record) = &mut self.record {
            record.result = Some(result_of(result));
        }
    }

    /// Records the headers of the response.
    pub(super) fn record_response(&mut self, host: &dyn Host) {
        if let Some(record) = &mut self.record {
            let status = host.header_number(Map::Response, ":status").ok().flatten();
            record.status = status.and_then(|status| u16::try_from(status).ok());
            let now = host.monotonic_millis();
            record.answered = Some(now.saturating_sub(record.began));
        }
    }

    /// Records a part of the response's body, whose bytes are not counted with the body.
    pub(super) fn record_body(&mut self, size: usize) {
        if let Some(record) = &mut self.record {
            record.bytes = record.bytes.saturating_add(size as u64);
        }
    }

    /// Ends the record of the request.
    pub(super) fn end_record(
        &mut self,
        host: &dyn Host,
        requests: &OpenRequests,
        recorder: &mut Recorder,
    ) {
        let Some(record) = self.record.take() else {
            return;
        };
        self.pick_up_record(requests);
        let now = host.monotonic_millis();
        let answered = record.answered;
        let mut decision = record.into_decision(host.unix_millis(), now);
        match &self.state {
            // The request has been sent back to EDGE, which records it there.
            State::Unchanged => return,
            State::Passed(..) => {
                decision.result = Some(result_of(Metric::RequestsPassed));
                decision.origin = answered;
            }
            State::Cached(stream) => complete(&mut decision, stream, now),
            State::Awaiting(_)
            | State::Asking(_)
            | State::SentToPeer(_)
            | State::Answered { .. } => {}
        }
        recorder.record(decision, now);
    }
}

/// Completes the decision about a cacheable request.
fn complete(decision: &mut Decision, stream: &EdgeRequest, now: Millis) {
    let account = &stream.progress.account;
    let remembered = match stream.progress.next_step.get() {
        Some(NextStep::HitForMiss(reason)) => Some(reason),
        _ => None,
    };
    decision.result = account.result();
    decision.waited = account.waited(now);
    decision.origin = account.origin_millis();
    decision.bytes = stream.body.sent.get();
    let reason = account.uncacheable().or(remembered);
    decision.not_stored = reason.map(UncacheableReason::name);
}

/// The first bytes of a header.
fn word(headers: &Headers, name: &str) -> Option<Box<str>> {
    let value = headers.get(name)?.to_string();
    Some(shortened(&value, MOST_WORD_BYTES).into())
}
