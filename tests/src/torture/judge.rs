// SPDX-License-Identifier: Apache-2.0
//! The judgement of the responses that clients received.

use super::answer::{Answer, End};
use super::ask::Ask;
use super::content::identify;
use super::fault::REFUSED;
use super::ledger::Wrong;
use super::object::{Kind, Object};
use super::origin::{FETCH, VARIANT, VERSION};
use super::world::World;
use std::ops::Range;
use std::time::Duration;

/// Lifetimes are whole seconds, and so is the edge's `Date`.
const ROUNDING: Duration = Duration::from_secs(2);

/// A range or a condition that leads completes its client's response before the fill behind it has ended. If the
/// origin cuts the fill, or a purge overtakes it, Envoy closes the connection, on which the client may have sent
/// another request.
const BEHIND_A_FILL: &str = "no answer, behind an early response whose fill was cut or purged";
/// The counter of requests that may stay without a response.
pub const UNANSWERED: &str = "no answer, as the client has left or the edge was down";
/// How far back a complaint lists earlier events.
const CONTEXT: Duration = Duration::from_secs(5);

/// A fault, and its description.
type Complaint = (Wrong, String);

fn wrong(what: impl Into<String>) -> Complaint {
    (Wrong::Answer, what.into())
}

/// A response that is to be judged.
pub struct Case<'a> {
    /// State of the run.
    pub world: &'a World,
    /// The request.
    pub ask: &'a Ask,
    /// The response.
    pub answer: &'a Answer,
}

impl Case<'_> {
    /// Judges the response, and returns the name of its counter.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn judge(&self) -> Result<&'static str, (Wrong, String)> {
        self.verdict()
            .map_err(|(wrong, what)| (wrong, format!("{what}; {}", self.circumstances())))
    }

    /// The request, the response, and earlier events, for a complaint.
    #[must_use]
    pub fn circumstances(&self) -> String {
        let (ask, answer) = (self.ask, self.answer);
        let since = answer.asked.saturating_sub(CONTEXT);
        let fetches = self.world.shelf.fetches.recent(ask.object, since);
        let before = answer.after.map(|(object, ..)| object);
        let before = before.map(|object| self.world.shelf.fetches.recent(object, since));
        let stalls = self.world.stalls.within(since, answer.ended);
        let outages = self.world.outages.within(since, answer.ended);
        let deaths = self.world.deaths.within(since, answer.ended);
        let path = &self.object().path;
        let purges = self.world.purges.within(path, since, answer.ended);
        let departures = self
            .world
            .departures
            .within(ask.object, since, answer.ended);
        let bytes = answer.body.len();
        let Answer {
            edge,
            status,
            headers,
            end,
            after,
            asked,
            ended,
            ..
        } = answer;
        let fields = &headers.0;
        format!(
            "{ask:?} of {path} at edge {edge} from {asked:?} to {ended:?}: {status:?} {fields:?}, {bytes} bytes of body, {end:?}; \
             after {after:?} of {before:?}; fetches {fetches:?}; stalls {stalls:?}; \
             outages {outages:?}; deaths of the first origin {deaths:?}; \
             purges {purges:?}; departures {departures:?}"
        )
    }

    fn object(&self) -> &Object {
        &self.world.shelf.objects[self.ask.object]
    }

    fn verdict(&self) -> Result<&'static str, Complaint> {
        match &self.answer.end {
            End::Stuck => return Err((Wrong::Stuck, "stuck".to_owned())),
            End::Cut(_) if self.answer.status.is_none() && self.follows_an_ended_fill() => {
                return Ok(BEHIND_A_FILL);
            }
            End::Cut(how) if !self.may_be_cut() => {
                return Err((Wrong::Cut, format!("cut without a reason; {how}")));
            }
            _ => {}
        }
        let Some(status) = self.answer.status else {
            return Ok(UNANSWERED);
        };
        if let Some(counted) = self.admission(status)? {
            return Ok(counted);
        }
        self.generation(status)?;
        let counted = match status {
            200 | 404 => self.whole(status)?,
            206 => self.part()?,
            304 => self.not_modified()?,
            REFUSED => return self.refusal(),
            500..=599 => return self.error(status),
            _ => return Err(wrong("no such status")),
        };
        self.age()?;
        self.freshness()?;
        self.origin()?;
        Ok(match self.answer.end {
            End::Cut(_) => self.excuse(),
            End::Left => "clients that left",
            _ => counted,
        })
    }

    /// Checks a response that the request itself has caused, which is for its own client only.
    fn refusal(&self) -> Result<&'static str, Complaint> {
        let number = self.answer.headers.number(FETCH);
        let number = number.ok_or_else(|| wrong("a refusal that is not the origin's"))?;
        let fetch = self.world.shelf.fetches.get(number);
        let begun = fetch.filter(|fetch| fetch.object == self.ask.object);
        let own = begun.is_some_and(|fetch| fetch.begun >= self.answer.asked);
        if self.ask.padding.is_none() || !own || !self.world.ledger.is_first(number) {
            return Err(wrong("another client's refusal"));
        }
        Ok("refusals of requests for their header fields")
    }

    fn version(&self) -> Result<u64, Complaint> {
        let told = self
            .answer
            .headers
            .number(VERSION)
            .map(|version| version as u64);
        told.ok_or_else(|| wrong("no version"))
    }

    /// Checks the fields of each response with the object.
    fn fields(&self, status: u16) -> Result<u64, Complaint> {
        let (object, version) = (self.object(), self.version()?);
        if (status == 404) != (object.kind == Kind::Missing) {
            return Err(wrong("another object's status"));
        }
        let tag = self.answer.headers.get("etag");
        // A 404 may lack its tag, because the edge keeps tags only on responses that they apply to.
        // The tags of a second server mean nothing to the first one.
        let tagless = (object.kind == Kind::Missing || self.world.has_second) && tag.is_none();
        if !tagless && tag != object.etag(version).as_deref() {
            return Err(wrong("another version's tag"));
        }
        let varies = object.kind == Kind::Varying;
        let adorned = object.adornment.map(|kind| kind.of_response(version));
        for (name, value) in adorned.into_iter().flatten() {
            if self.answer.headers.get(&name) != Some(&value) {
                return Err(wrong(format!("another {name}")));
            }
        }
        if varies && self.answer.headers.get(VARIANT) != Some(self.ask.variant) {
            return Err(wrong("another variant"));
        }
        Ok(version)
    }

    fn bytes(&self, version: u64, range: Range<usize>) -> Result<(), Complaint> {
        let (object, body) = (self.object(), &self.answer.body);
        if body.len() > range.len() || (self.answer.end == End::Whole && body.len() < range.len()) {
            return Err(wrong(format!("{} bytes of {range:?}", body.len())));
        }
        let content = object.content(self.ask.variant, version);
        let Some(at) = content.difference(range.start, body) else {
            return Ok(());
        };
        let key = object.key(self.ask.variant);
        let whose = identify(&key, version, at, &body[at - range.start..]);
        Err(wrong(format!(
            "from byte {at} on the bytes are not of version {version} but of {whose:?}"
        )))
    }

    fn whole(&self, status: u16) -> Result<&'static str, Complaint> {
        let version = self.fields(status)?;
        let object = self.object();
        let size = object.size(version);
        let length = self.answer.headers.number("content-length");
        if length.is_some_and(|length| length != size)
            || (length.is_none() && !object.chunked && !self.ask.head)
        {
            return Err(wrong(format!("the length is {length:?}, not {size}")));
        }
        // A condition applies to a 2xx only (RFC 9110, 13.2.1).
        let holds = self.ask.validator.is_some() && self.ask.validator == self.validator();
        if status == 200 && holds {
            return Err(wrong("the client has this version"));
        }
        if self.ask.head {
            self.bytes(version, 0..0)?;
            return Ok("HEADs");
        }
        self.bytes(version, 0..size)?;
        Ok(match self.ask.part {
            Some(_) if self.needs_a_part() => return Err(wrong("the whole instead of a part")),
            Some(_) => "whole objects in place of a part",
            None if self.ask.validator.is_some() => "whole objects, conditions that failed",
            None => "whole objects",
        })
    }

    /// Whether the response must be a part. The edge cuts a part out of an object from the store, or on its way into
    /// the store, if the object's length is known. The origin of a run never does.
    fn needs_a_part(&self) -> bool {
        let object = self.object();
        let status = self.answer.headers.get("cache-status").unwrap_or_default();
        let passes = status.contains("fwd=bypass");
        let second = self.world.has_second && self.validator().is_none();
        matches!(object.kind, Kind::Stored | Kind::Varying) && !object.chunked && !passes && !second
    }

    fn part(&self) -> Result<&'static str, Complaint> {
        let version = self.fields(206)?;
        let size = self.object().size(version);
        let range = self.ask.part.as_ref().and_then(|part| part.of(size));
        let range = range.ok_or_else(|| wrong("a part that nobody asked for"))?;
        let field = format!("bytes {}-{}/{size}", range.start, range.end - 1);
        if self.answer.headers.get("content-range") != Some(&field) {
            return Err(wrong(format!("the range is not {field}")));
        }
        self.bytes(version, range)?;
        Ok("parts of objects")
    }

    /// The tag of the response, or its date.
    #[must_use]
    pub fn validator(&self) -> Option<String> {
        let field = if self.object().dated {
            "last-modified"
        } else {
            "etag"
        };
        self.answer.headers.get(field).map(str::to_owned)
    }

    fn not_modified(&self) -> Result<&'static str, Complaint> {
        let date = self.answer.headers.get("date").map(str::to_owned);
        // The edge takes the dates of a second server from its responses, and judges by `Date` (RFC 9111, 4.3.2).
        let by_date = date.filter(|_| self.world.has_second && self.object().dated);
        let (Some(own), Some(stored)) = (&self.ask.validator, self.validator().or(by_date)) else {
            return Err(wrong("the client has no such version"));
        };
        // A stored version that is older than the client's has not been modified since (RFC 9110, 13.1.3).
        if *own != stored && !(self.object().dated && is_later(own, &stored)) {
            return Err(wrong("the client has no such version"));
        }
        Ok("copies of clients that are still valid")
    }

    /// Checks that a version is not served longer than its lifetime and its windows after it was replaced.
    fn age(&self) -> Result<(), Complaint> {
        let object = self.object();
        let tag = self
            .answer
            .headers
            .get("etag")
            .and_then(|tag| tag.trim_matches('"').parse().ok());
        let Some(version) = self.version().ok().or(tag) else {
            return Ok(());
        };
        let replaced = object.replaced(version);
        let slack = if object.kind.is_shared() {
            object.reach()
                + object.fill_time()
                + ROUNDING
                + self.world.stalls.total(replaced, self.answer.asked)
        } else {
            Duration::ZERO
        };
        if self.answer.asked > replaced.saturating_add(slack) {
            let late = (self.answer.asked - replaced).as_secs_f64();
            return Err(wrong(format!(
                "version {version} was replaced {late:.3} s before"
            )));
        }
        Ok(())
    }

    /// Checks that neither a purged response nor one for a single client is from an earlier fetch.
    fn origin(&self) -> Result<(), Complaint> {
        let Some(number) = self.answer.headers.number(FETCH) else {
            return Ok(());
        };
        let (object, asked) = (self.object(), self.answer.asked);
        let fetch = self.world.shelf.fetches.get(number);
        let fetch = fetch.ok_or_else(|| wrong("no such fetch"))?;
        if fetch.object != self.ask.object {
            return Err(wrong("another object's fetch"));
        }
        if let Some(purged) = self
            .world
            .purges
            .last_before(&object.path, self.answer.edge, asked)
            && fetch.begun < purged
        {
            let (begun, purged) = (fetch.begun.as_secs_f64(), purged.as_secs_f64());
            return Err(wrong(format!(
                "fetched at {begun:.3} s, and purged at {purged:.3} s"
            )));
        }
        if !object.kind.is_shared() && (fetch.begun < asked || !self.world.ledger.is_first(number))
        {
            return Err(wrong("another client's answer"));
        }
        Ok(())
    }
}

mod admission;
mod failures;
mod freshness;

/// Whether the first of two dates is later than the second one.
fn is_later(date: &str, other: &str) -> bool {
    let [date, other] = [date, other].map(httpdate::parse_http_date);
    matches!((date, other), (Ok(date), Ok(other)) if date > other)
}

#[cfg(test)]
mod tests;
