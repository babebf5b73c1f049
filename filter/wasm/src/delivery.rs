// SPDX-License-Identifier: Apache-2.0
//! Makes of a whole response what the client asked for: 206, 304, 412, 416, or a HEAD.

use std::ops::Range;

use proxy_wasm::types::Action;
use sluice_core::http::cache_status::CacheStatus;
use sluice_core::http::conditions::Validators;
use sluice_core::http::demand::{Candidate, Delivery, Demand};
use sluice_core::http::range::{Slice, Slicer, unsatisfied_range};

use crate::edge;
use crate::headers::{Headers, extend};
use crate::host::{self, Map};
use crate::stream::Stream;
use crate::worker;

/// What of a response's body goes to the client.
#[derive(Clone, Copy, Debug)]
pub enum Passing {
    /// All of it.
    Whole,
    /// A part.
    Slice(Slicer),
    /// None of it.
    Nothing,
}

/// What a request demands.
pub fn demand(headers: &Headers) -> Demand {
    let mut demand = Demand::default();
    let demands = |(name, _): &(&str, &[u8])| Demand::concerns(name.as_bytes());
    for (name, value) in headers.iter().filter(demands) {
        demand.observe(name, value);
    }
    demand
}

/// Takes the demand of a request out of it, so that neither the store nor a fill sees it.
pub fn set_aside(headers: &Headers) -> host::Result<()> {
    headers
        .iter()
        .filter(|(name, _)| Demand::concerns(name.as_bytes()))
        .try_for_each(|(name, _)| host::remove_header(Map::Request, name))
}

/// Gives the effective context's request its demand back.
pub fn put_back(demand: &Demand) -> host::Result<()> {
    demand
        .fields()
        .try_for_each(|(name, value)| host::set_header(Map::Request, name, value))
}

/// The effective context's request headers that a call on its behalf takes along.
pub fn headers_for_calls() -> host::Result<Vec<(String, String)>> {
    let headers = Headers::new(host::header_pairs(Map::Request)?);
    let theirs = headers
        .iter()
        .filter(|(name, _)| !name.starts_with(':') && !is_of_the_hop(name));
    let texts = theirs.filter_map(|(name, value)| {
        Some((name.to_owned(), std::str::from_utf8(value).ok()?.to_owned()))
    });
    Ok(texts.collect())
}

/// Headers that are about one connection, or that Envoy or the filter adds to each request.
fn is_of_the_hop(name: &str) -> bool {
    const CONNECTION: [&str; 6] = [
        "connection",
        "content-length",
        "te",
        "transfer-encoding",
        "upgrade",
        "x-request-id",
    ];
    CONNECTION.contains(&name) || name.starts_with("x-envoy-") || name.starts_with("x-sluice-")
}

/// Turns the response into what was asked for. `status` is the origin's; `separable` says that the
/// response may be replaced by an answer, as no store would be hurt if its reader left.
pub fn deliver(stream: &Stream, status: u16, separable: bool) -> host::Result<Action> {
    let Some(demand) = &stream.demand else {
        return Ok(Action::Continue);
    };
    let headers = Headers::new(host::header_pairs(Map::Response)?);
    let candidate = Candidate {
        status,
        validators: validators(&headers),
        length: headers.content_length().or_else(|| counted(stream)),
    };
    let answer = match demand.delivery(&candidate, stream.head) {
        Delivery::Whole => return Ok(Action::Continue),
        Delivery::Part { slice, length } => return cut(stream, slice, length),
        Delivery::NotModified => Answer::not_modified(),
        Delivery::PreconditionFailed => Answer::precondition_failed(),
        Delivery::Unsatisfiable { length } => Answer::unsatisfiable(length),
    };
    if separable {
        stream.answered.set(true);
        answer.send(&headers)?;
        Ok(Action::Pause)
    } else {
        answer.disguise(stream, &headers)
    }
}

/// Answers the effective context's request with what its client asks for of a whole 200 with these `headers`, but for
/// its length, and this `body`. A HEAD gets no body from Envoy.
pub fn answer_with(
    demand: Option<&Demand>,
    head: bool,
    headers: &Headers,
    body: &[u8],
) -> host::Result<()> {
    const DETAILS: &str = "sluice_hot";
    let delivery = demand.map_or(Delivery::Whole, |demand| {
        let candidate = Candidate {
            status: 200,
            validators: validators(headers),
            length: u64::try_from(body.len()).ok(),
        };
        demand.delivery(&candidate, head)
    });
    match delivery {
        Delivery::Whole => host::respond_with(200, DETAILS, headers.bytes(), body),
        Delivery::Part { slice, length } => {
            let range = slice.content_range(length);
            let range = [("content-range", range.as_bytes())];
            let headers = extend(headers.bytes(), range.into_iter());
            host::respond_with(206, DETAILS, &headers, slice.cut_from(body))
        }
        Delivery::NotModified => Answer::not_modified().send(headers),
        Delivery::PreconditionFailed => Answer::precondition_failed().send(headers),
        Delivery::Unsatisfiable { length } => Answer::unsatisfiable(length).send(headers),
    }
}

/// What `demand` makes of a response with these `headers`, if that has no body.
pub fn bodiless(demand: &Demand, status: u16, headers: &Headers) -> Option<Bodiless> {
    let candidate = Candidate {
        status,
        validators: validators(headers),
        length: None,
    };
    let answer = match demand.delivery(&candidate, false) {
        Delivery::NotModified => Answer::not_modified(),
        Delivery::PreconditionFailed => Answer::precondition_failed(),
        Delivery::Whole | Delivery::Part { .. } | Delivery::Unsatisfiable { .. } => return None,
    };
    let fields = answer.fields(headers).into_iter();
    Some(Bodiless {
        status: answer.status,
        details: answer.details,
        fields: fields
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
    })
}

fn validators(headers: &Headers) -> Validators<'_> {
    Validators {
        etag: headers.text("etag"),
        last_modified: headers.text("last-modified"),
        date: headers.text("date"),
    }
}

/// The length of a stored body that no header tells, once somebody has seen its end.
pub fn counted(stream: &Stream) -> Option<u64> {
    let body = stream.unannounced.get()?;
    let key = stream.target.cache_key();
    worker::with(|worker| worker.body_length(key, body)).flatten()
}

/// Makes a 206 of a whole response: this slice of an object of `length` bytes.
fn cut(stream: &Stream, slice: Slice, length: u64) -> host::Result<Action> {
    host::set_header(Map::Response, ":status", "206")?;
    host::set_header(Map::Response, "content-range", &slice.content_range(length))?;
    host::set_header(Map::Response, "content-length", &slice.length().to_string())?;
    stream.passing.set(Passing::Slice(Slicer::new(slice)));
    Ok(Action::Continue)
}

/// The whole answer of a client that needs no body.
#[derive(Clone, Debug)]
pub struct Bodiless {
    status: u16,
    details: &'static str,
    fields: Vec<(String, String)>,
}

impl Bodiless {
    /// The same, with what is to be said of the way here in the place of what the response says of its own.
    pub fn described(mut self, status: &CacheStatus<'_>) -> Self {
        let mut fields = self.fields.iter_mut().rev();
        if let Some((_, value)) = fields.find(|(name, _)| name == edge::CACHE_STATUS) {
            *value = status.to_string();
        }
        self
    }

    /// Answers the effective context's request.
    pub fn send(&self) -> host::Result<()> {
        let fields = self.fields.iter();
        let fields: Vec<_> = fields
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        host::respond(self.status, self.details, &fields, "")
    }
}

/// A response without a body that takes the place of the whole one.
struct Answer {
    status: u16,
    details: &'static str,
    content_range: Option<String>,
}

impl Answer {
    const fn of(status: u16, details: &'static str) -> Self {
        Self {
            status,
            details,
            content_range: None,
        }
    }

    const fn not_modified() -> Self {
        Self::of(304, "sluice_not_modified")
    }

    const fn precondition_failed() -> Self {
        Self::of(412, "sluice_precondition_failed")
    }

    fn unsatisfiable(length: u64) -> Self {
        Self {
            content_range: Some(unsatisfied_range(length)),
            ..Self::of(416, "sluice_range_unsatisfiable")
        }
    }

    /// Whether a header of the whole response belongs to this one too. A 304 has what RFC 9110, 15.4.5
    /// asks for, and what does not describe the body; an error is not for storing.
    fn keeps(&self, headers: &Headers, name: &str) -> bool {
        let not_modified = self.status == 304;
        match name {
            "content-location" | "etag" | "cache-control" | "expires" | "age" => not_modified,
            "last-modified" => not_modified && !headers.has("etag"),
            "content-length"
            | "content-type"
            | "content-encoding"
            | "content-language"
            | "content-range"
            | "content-disposition"
            | "content-md5"
            | "transfer-encoding" => false,
            "accept-ranges" => self.status == 416,
            _ => !name.starts_with(':'),
        }
    }

    fn added(&self) -> impl Iterator<Item = (&str, &str)> {
        let range = self.content_range.as_deref();
        let no_store = (self.status != 304).then_some(("cache-control", "no-store"));
        range
            .map(|range| ("content-range", range))
            .into_iter()
            .chain(no_store)
    }

    fn fields<'a>(&'a self, headers: &'a Headers) -> Vec<(&'a str, &'a str)> {
        let kept = headers
            .iter()
            .filter(|(name, _)| self.keeps(headers, name))
            .filter_map(|(name, value)| Some((name, std::str::from_utf8(value).ok()?)));
        kept.chain(self.added()).collect()
    }

    /// Answers at once, so that nobody need read the body.
    fn send(&self, headers: &Headers) -> host::Result<()> {
        host::respond(self.status, self.details, &self.fields(headers), "")
    }

    /// Changes the response in place, and drops its body as it passes.
    fn disguise(&self, stream: &Stream, headers: &Headers) -> host::Result<Action> {
        stream.passing.set(Passing::Nothing);
        for (name, _) in headers.iter() {
            if !name.starts_with(':') && !self.keeps(headers, name) {
                host::remove_header(Map::Response, name)?;
            }
        }
        for (name, value) in self.added() {
            host::set_header(Map::Response, name, value)?;
        }
        if self.status != 304 {
            host::set_header(Map::Response, "content-length", "0")?;
        }
        host::set_header(Map::Response, ":status", &self.status.to_string())?;
        Ok(Action::Continue)
    }
}

/// Lets through what the client wants of the next `size` bytes of the body.
pub fn pass_body(stream: &Stream, size: usize) -> host::Result<()> {
    let kept = match stream.passing.get() {
        Passing::Whole => return Ok(()),
        Passing::Nothing => 0..0,
        Passing::Slice(mut slicer) => {
            let kept = slicer.keep(size);
            stream.passing.set(Passing::Slice(slicer));
            kept
        }
    };
    keep(size, kept)
}

/// Only the start of a passing buffer can be dropped without a copy.
fn keep(size: usize, kept: Range<usize>) -> host::Result<()> {
    if kept.end == size {
        host::drop_response_body(kept.start)
    } else if kept.is_empty() {
        host::drop_response_body(size)
    } else {
        let bytes = host::response_body(kept)?;
        host::replace_response_body(size, &bytes)
    }
}
