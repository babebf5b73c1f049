// SPDX-License-Identifier: Apache-2.0
//! Turns a whole response into the one that the client's conditions and range demand: 206, 304, 412 or 416 (RFC 9110,
//! 13, 14).

use sluice_core::http::conditional::conditions::Validators;
use sluice_core::http::conditional::demand::{Delivery, Demand, WholeResponse};
use sluice_core::http::conditional::range::{Part, Slice};

use super::complete_reply::CompleteReply;
use super::demand_reply::DemandReply;
use crate::request::EdgeRequest;
use sluice_host::headers::{Headers, extend};
use sluice_host::{self as host, Action, Host, Map};

/// Turns the response into the demanded one. `status` is the origin's. `separable` says that an answer may replace
/// the response, because no fill is lost if its reader leaves. `counted` is the length of the body if it is known
/// although the headers lack it.
pub fn deliver(
    host: &dyn Host,
    stream: &EdgeRequest,
    status: u16,
    separable: bool,
    counted: Option<u64>,
) -> host::Result<Action> {
    let Some(demand) = &stream.demand else {
        return Ok(Action::Continue);
    };
    let headers = host.headers(Map::Response)?;
    let candidate = WholeResponse {
        status,
        validators: validators(&headers),
        length: headers.content_length().or(counted),
    };
    let answer = match demand.delivery(&candidate, stream.head) {
        Delivery::Whole => return Ok(Action::Continue),
        Delivery::Part { slice, length } => return cut(host, stream, slice, length),
        Delivery::NotModified => DemandReply::not_modified(),
        Delivery::PreconditionFailed => DemandReply::precondition_failed(),
        Delivery::Unsatisfiable { length } => DemandReply::unsatisfiable(length),
    };
    if separable {
        stream.progress.answered.set(true);
        answer.send(host, &headers)?;
        Ok(Action::Pause)
    } else {
        answer.disguise(host, stream, &headers)
    }
}

/// Answers the effective context's request with the result of the client's demand on a whole response. The response
/// has this `status`, these `headers` without its length, and this `body`. Envoy sends no body to a HEAD.
pub fn answer_with(
    host: &dyn Host,
    demand: Option<&Demand>,
    head: bool,
    status: u16,
    headers: &Headers,
    body: &[u8],
) -> host::Result<()> {
    const DETAILS: &str = "sluice_hot";
    let delivery = demand.map_or(Delivery::Whole, |demand| {
        let candidate = WholeResponse {
            status,
            validators: validators(headers),
            length: u64::try_from(body.len()).ok(),
        };
        demand.delivery(&candidate, head)
    });
    match delivery {
        Delivery::Whole => host.respond_with(status, DETAILS, headers.bytes(), body),
        Delivery::Part { slice, length } => {
            let range = slice.content_range(length);
            let range = [("content-range", range.as_bytes())];
            let headers = extend(headers.bytes(), range.into_iter());
            host.respond_with(206, DETAILS, &headers, slice.cut_from(body))
        }
        Delivery::NotModified => DemandReply::not_modified().send(host, headers),
        Delivery::PreconditionFailed => DemandReply::precondition_failed().send(host, headers),
        Delivery::Unsatisfiable { length } => {
            DemandReply::unsatisfiable(length).send(host, headers)
        }
    }
}

/// The 304 or 412 that results from `demand` on a response with these `headers`. `None` if the result is another
/// status.
pub fn bodiless(demand: &Demand, status: u16, headers: &Headers) -> Option<CompleteReply> {
    let candidate = WholeResponse {
        status,
        validators: validators(headers),
        length: None,
    };
    let answer = match demand.delivery(&candidate, false) {
        Delivery::NotModified => DemandReply::not_modified(),
        Delivery::PreconditionFailed => DemandReply::precondition_failed(),
        Delivery::Whole | Delivery::Part { .. } | Delivery::Unsatisfiable { .. } => return None,
    };
    Some(answer.bodiless(headers))
}

fn validators(headers: &Headers) -> Validators<'_> {
    let [etag, last_modified, date] =
        ["etag", "last-modified", "date"].map(|name| headers.get(name));
    Validators::of(etag, last_modified, date)
}

/// Turns a whole response into a 206 with this slice of an object of `length` bytes.
fn cut(host: &dyn Host, stream: &EdgeRequest, slice: Slice, length: u64) -> host::Result<Action> {
    host.set_header(Map::Response, ":status", "206")?;
    host.set_header(Map::Response, "content-range", slice.content_range(length))?;
    host.set_header(Map::Response, "content-length", slice.length().to_string())?;
    stream.body.pass_only(Part::Slice(slice));
    Ok(Action::Continue)
}
