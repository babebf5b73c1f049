// SPDX-License-Identifier: Apache-2.0
//! The question to the origin: one request for the headers of an object, whose response is not stored.

use std::rc::Rc;

use serde_json::json;
use sluice_core::admission::RequestFacts;
use sluice_core::internal_headers::AUTHORIZATION_HEADER;
use sluice_core::workers::millis;

use crate::edge::request::explanation::{Decision, Explanation};
use crate::request::call_kind::{CallKind, INSPECTION_TIMEOUT};
use crate::request::headers::headers_for_calls;
use crate::worker::own_requests::calls::{BackgroundCall, Calls};
use crate::worker::questions::{ONLINE, Questions};
use sluice_host::headers::Headers;

/// Asks the origin about a request that was explained, if EDGE would send it to the origin.
pub fn ask_origin(
    calls: &mut Calls,
    questions: &mut Questions,
    call: u32,
    explanation: Option<Explanation>,
    headers: &Headers,
) {
    let object = explanation.filter(|explained| {
        matches!(
            explained.decision,
            Decision::Cached(_) | Decision::Passed(_)
        )
    });
    let object = object.and_then(|explained| Some((explained.policy?, explained.target?)));
    let Some((policy, target)) = object else {
        let error = json!({"error": "the edge does not send this request to an origin"});
        return questions.pending.share(call, ONLINE, &error);
    };
    let mut sent = headers_for_calls(headers);
    let facts = RequestFacts::of(&policy.policy, headers.fields(), true);
    let credentials = headers.get("authorization");
    let credentials = credentials.filter(|_| facts.shows_credentials(&policy.policy));
    sent.extend(credentials.map(|value| {
        let value = value.bytes().to_vec();
        (AUTHORIZATION_HEADER.to_owned(), value)
    }));
    let kind = CallKind::Inspection(call);
    let mut asked = BackgroundCall::new(kind, Rc::new(target), policy);
    asked.headers = sent;
    calls.push(asked);
    let patience = millis(INSPECTION_TIMEOUT);
    // The call itself ends first.
    let until = calls
        .host
        .monotonic_millis()
        .saturating_add(patience + 1_000);
    questions.pending.await_part(call, ONLINE, until);
}
