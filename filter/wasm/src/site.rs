// SPDX-License-Identifier: Apache-2.0
//! What EDGE does where a site has no such object.
//!
//! Nothing can look up another object once a response has begun. So the first request that meets a
//! missing object is held at its response headers while the filter asks for the substitute by a call
//! of its own, and is then changed in place; for a moment after that, requests ask for the substitute
//! from the start.

use std::collections::HashMap;
use std::rc::Rc;

use sluice_core::key::CanonicalTarget;
use sluice_core::policy::Policy;
use sluice_core::site::cors::CORS_PREFIX;
use sluice_core::site::{Substitute, Visit, document};
use sluice_core::workers::StreamId;
use sluice_core::workers::{KeyHash, Millis};

use crate::clean::Body;
use crate::delivery::{Passing, deliver};
use crate::edge::CACHE_STATUS;
use crate::headers::Headers;
use crate::host::{self, Map};
use crate::stream::Stream;
use crate::worker;

/// Larger documents take no object's place.
const MOST_BYTES: u64 = 1 << 20;
/// For how long an object is known to be missing: what is uploaded is served as soon.
const KNOWN_MILLIS: Millis = 1_000;
/// Objects that are known to be missing.
const MOST_KNOWN: usize = 4_096;

/// What describes the body of an error, and its way through caches.
const OF_THE_ERROR: [&str; 10] = [
    "accept-ranges",
    "age",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "etag",
    "expires",
    "last-modified",
];

/// What a document's response says of its own way to the filter.
const OF_THE_CALL: [&str; 8] = [
    "cache-status",
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "server",
    "transfer-encoding",
    "vary",
];

/// What is known of a missing object.
#[derive(Clone, Copy, Debug)]
pub enum Known {
    /// It is a directory.
    Directory,
    /// It is none, and the bucket has answered with this status.
    Missing(u16),
}

/// What a request stands in for.
#[derive(Clone, Copy, Debug)]
pub struct StandIn {
    substitute: Substitute,
    missing: u16,
}

/// Where a request goes.
#[derive(Debug)]
pub enum Way {
    /// To what it asks for.
    Straight,
    /// To a directory, the value of `Location`.
    Redirect(String),
    /// To a document in the place of what it asks for.
    Instead(StandIn, CanonicalTarget),
}

/// The way of a visit, by what is known.
pub fn way(policy: &Policy, visit: &Visit, target: &CanonicalTarget) -> Way {
    let known = worker::with(|worker| worker.known_missing(target)).flatten();
    match known {
        None => Way::Straight,
        Some(Known::Directory) => match visit.location() {
            Some(location) => Way::Redirect(location.to_owned()),
            None => Way::Straight,
        },
        Some(Known::Missing(missing)) => {
            let substitute = visit.next(&policy.site, Some(Substitute::Directory));
            let instead = substitute.and_then(|substitute| {
                let stand_in = StandIn {
                    substitute,
                    missing,
                };
                Some(Way::Instead(
                    stand_in,
                    document(policy, target, substitute)?,
                ))
            });
            instead.unwrap_or(Way::Straight)
        }
    }
}

/// Answers a request for a directory.
pub fn answer_redirect(location: &str) -> host::Result<()> {
    worker::with(|worker| worker.count_substitute());
    let headers = [
        ("location", location),
        (CACHE_STATUS, "sluice; detail=directory"),
    ];
    host::respond(
        Substitute::Directory.status(404),
        "sluice_directory",
        &headers,
        "",
    )
}

impl StandIn {
    /// Whether what the client asks for beyond the object counts.
    pub fn takes_demands(self) -> bool {
        self.substitute != Substitute::Error
    }

    /// Makes of the document's response that of the missing object.
    pub fn finish(self, policy: &Policy, status: u16) -> host::Result<()> {
        if status != 200 {
            return Ok(());
        }
        worker::with(|worker| worker.count_substitute());
        note(self.substitute)?;
        if policy.site.varies_by_accept() {
            host::add_header(Map::Response, "vary", "Accept")?;
        }
        if self.substitute == Substitute::Error {
            let kept = |name: &str| {
                matches!(
                    name,
                    "content-type" | "content-language" | "content-encoding"
                )
            };
            for name in OF_THE_ERROR.into_iter().filter(|name| !kept(name)) {
                host::remove_header(Map::Response, name)?;
            }
            let missing = self.substitute.status(self.missing);
            host::set_header(Map::Response, ":status", &missing.to_string())?;
        }
        Ok(())
    }
}

/// Holds the response of that status if it may have a substitute; `known_for` that long.
pub fn hold(stream: &Rc<Stream>, status: u16, known_for: Millis) -> host::Result<bool> {
    let policy = &stream.policy.policy;
    let Some(visit) = stream
        .visit
        .as_ref()
        .filter(|_| policy.site.is_missing(status))
    else {
        return Ok(false);
    };
    if policy.site.varies_by_accept() {
        host::add_header(Map::Response, "vary", "Accept")?;
    }
    // A filter cannot give a body to what has none.
    let bodiless = stream.bodiless.get() && !stream.head;
    let substitute = visit.next(&policy.site, None).filter(|_| !bodiless);
    let Some(substitute) = substitute else {
        return Ok(false);
    };
    let held = Held {
        stream: stream.id,
        substitute,
        status,
        known_for: known_for.min(KNOWN_MILLIS),
    };
    Ok(worker::with(|worker| worker.look_for_substitute(stream, held)).unwrap_or(false))
}

/// Keeps a document that is too large for a call from being collected.
pub fn bound_document(stream: &Stream) -> host::Result<()> {
    let length = host::header(Map::Response, "content-length")?;
    let length = length.and_then(|length| std::str::from_utf8(&length).ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > MOST_BYTES) {
        host::set_header(Map::Response, ":status", "204")?;
        host::remove_header(Map::Response, "content-length")?;
        stream.passing.set(Passing::Nothing);
    }
    Ok(())
}

/// A response that is held.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Whose.
    pub stream: StreamId,
    /// What is looked for.
    pub substitute: Substitute,
    /// The bucket's status.
    pub status: u16,
    /// For how long that is known.
    pub known_for: Millis,
}

/// What a worker knows of missing objects, and who waits for a substitute.
#[derive(Debug, Default)]
pub struct Substitutes {
    known: HashMap<KeyHash, (Known, Millis)>,
    waiting: HashMap<KeyHash, Vec<Held>>,
}

impl Substitutes {
    /// What is known of an object at `now`.
    pub fn known(&self, key: KeyHash, now: Millis) -> Option<Known> {
        let (known, until) = self.known.get(&key)?;
        (*until > now).then_some(*known)
    }

    /// Remembers it.
    pub fn remember(&mut self, key: KeyHash, known: Known, until: Millis, now: Millis) {
        if self.known.len() >= MOST_KNOWN {
            self.known.retain(|_, (_, until)| *until > now);
            if self.known.len() >= MOST_KNOWN {
                self.known.clear();
            }
        }
        self.known.insert(key, (known, until));
    }

    /// Has a response wait for a document; true if nobody has asked for it.
    pub fn wait(&mut self, document: KeyHash, held: Held) -> bool {
        let waiting = self.waiting.entry(document).or_default();
        waiting.push(held);
        waiting.len() == 1
    }

    /// Those who wait for a document.
    pub fn take(&mut self, document: KeyHash) -> Vec<Held> {
        self.waiting.remove(&document).unwrap_or_default()
    }
}

/// A document that the filter has asked for.
#[derive(Debug)]
pub struct Document {
    status: u16,
    headers: Headers,
    body: Vec<u8>,
}

impl Document {
    /// The answer of a call, with a body of that size; `None` if there is no such document.
    pub fn answered(size: usize) -> Option<Self> {
        let headers = Headers::new(host::header_pairs(Map::CallResponse).ok()?);
        let status = headers.text(":status")?.parse().ok()?;
        let bytes = u64::try_from(size).ok()?;
        let whole = headers
            .content_length()
            .is_none_or(|length| length == bytes);
        let fits = bytes <= MOST_BYTES;
        if !matches!(status, 200 | 204) || !whole || !fits {
            return None;
        }
        let body = host::call_body(size).ok()?;
        Some(Self {
            status,
            headers,
            body,
        })
    }

    /// Whether it can be that substitute.
    pub fn serves_as(&self, substitute: Substitute) -> bool {
        substitute == Substitute::Directory || self.status == 200
    }

    /// Turns the effective context's held response into the substitute.
    pub fn take_place(&self, stream: &Stream, held: Held) -> host::Result<()> {
        note(held.substitute)?;
        for name in OF_THE_ERROR {
            host::remove_header(Map::Response, name)?;
        }
        let status = held.substitute.status(held.status);
        host::set_header(Map::Response, ":status", &status.to_string())?;
        match held.substitute {
            Substitute::Directory => {
                let location = stream.visit.as_ref().and_then(Visit::location);
                host::set_header(Map::Response, "location", location.unwrap_or("/"))?;
                self.replace_body(stream, Vec::new())
            }
            Substitute::Fallback => {
                self.copy_headers(|name| !is_of_the_call(name))?;
                self.replace_body(stream, self.body.clone())?;
                deliver(stream, status, false).map(|_| ())
            }
            Substitute::Error => {
                self.copy_headers(|name| matches!(name, "content-type" | "content-language"))?;
                self.replace_body(stream, self.body.clone())
            }
        }
    }

    fn copy_headers(&self, goes: impl Fn(&str) -> bool) -> host::Result<()> {
        for (name, value) in self.headers.iter().filter(|(name, _)| goes(name)) {
            let value = String::from_utf8_lossy(value);
            host::set_header(Map::Response, name, &value)?;
        }
        Ok(())
    }

    fn replace_body(&self, stream: &Stream, body: Vec<u8>) -> host::Result<()> {
        host::set_header(Map::Response, "content-length", &body.len().to_string())?;
        stream.body.replace(Body::Replaced(body));
        Ok(())
    }
}

fn is_of_the_call(name: &str) -> bool {
    let internal = [":", "x-envoy-", "x-sluice-", CORS_PREFIX];
    OF_THE_CALL.contains(&name) || internal.iter().any(|start| name.starts_with(start))
}

/// Says in `Cache-Status` what has taken the place.
fn note(substitute: Substitute) -> host::Result<()> {
    let told = host::header(Map::Response, CACHE_STATUS)?.unwrap_or_default();
    let told = String::from_utf8_lossy(&told);
    let told = format!("{told}; detail={}", substitute.name());
    host::set_header(Map::Response, CACHE_STATUS, &told)
}
