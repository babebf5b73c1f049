// SPDX-License-Identifier: Apache-2.0
//! A stream: Envoy's side of it, and the role's context.

use std::cell::{Cell, RefCell};

use sluice_host::Half;
use sluice_host::headers::Headers;
use sluice_roles::callbacks::StreamContext;

use crate::abi::{BodyType, Filter, HeaderMapType, Scheduler};
use crate::aid::Aid;
use crate::reply::Reply;

/// What stands behind a stream.
pub enum Part {
    /// A worker's carrier.
    Carrier,
    /// A small filter.
    Aid(Aid),
    /// A role.
    Role(RefCell<Box<dyn StreamContext>>),
}

/// A stream on one worker.
pub struct Stream {
    /// The number by which the roles know it; 0 is a carrier.
    pub context: u32,
    /// Envoy's side, until [`Stream::ended`].
    pub filter: Filter,
    /// What handles it.
    pub part: Part,
    /// Whether it is in a chain behind the cache filter.
    pub upstream: bool,
    /// Whether its client has asked with HEAD, once that is known.
    head: Cell<Option<bool>>,
    /// It is over: Envoy has destroyed it, or will.
    pub ended: Cell<bool>,
    /// The worker has been lost, with what the role knew of this stream.
    pub lost: Cell<bool>,
    /// A response has begun to pass, or the filter's own.
    pub responds: Cell<bool>,
    /// The filter's own reply goes to the client.
    pub replied: Cell<bool>,
    /// The half whose headers the role is handling.
    pub handling: Cell<Option<Half>>,
    /// That half goes on, whatever the role says: it was resumed meanwhile.
    pub resumed: Cell<bool>,
    /// What wakes it once its worker is lost.
    pub scheduler: RefCell<Option<Scheduler>>,
    /// A reply of the filter's own that the role has not let pass yet.
    pub reply: RefCell<Option<Reply>>,
}

impl Stream {
    /// A stream that has just come.
    pub const fn new(context: u32, filter: Filter, part: Part, upstream: bool) -> Self {
        Self {
            context,
            filter,
            part,
            upstream,
            head: Cell::new(None),
            ended: Cell::new(false),
            lost: Cell::new(false),
            responds: Cell::new(false),
            replied: Cell::new(false),
            handling: Cell::new(None),
            resumed: Cell::new(false),
            scheduler: RefCell::new(None),
            reply: RefCell::new(None),
        }
    }

    /// Whether its response passes unseen: it is the filter's own, or there is no role to see it.
    pub fn passes(&self) -> bool {
        self.replied.get() || matches!(self.part, Part::Aid(_))
    }

    /// Notes the method from the request's headers, the first time that the role reads them: it may change it later.
    pub fn note_method(&self, headers: &Headers) {
        if self.head.get().is_none() {
            self.head.set(Some(headers.is(":method", "HEAD")));
        }
    }

    /// Whether its client has asked with HEAD.
    pub fn is_head(&self) -> bool {
        self.head.get().unwrap_or_else(|| {
            let method = self.filter.header(HeaderMapType::Request, ":method");
            method.is_some_and(|method| method == b"HEAD")
        })
    }

    /// Sends the filter's own reply. It comes in the place of a response that has begun to pass, if there is one.
    pub fn send(&self, reply: &Reply) {
        self.replied.set(true);
        if self.responds.replace(true) || !reply.is_object() {
            return reply.send_by_envoy(self.filter);
        }
        let ends = self.is_head();
        reply.begin(self.filter, ends);
        if !ends && !self.ended.get() {
            self.filter.end_response(&reply.body);
        }
    }

    /// Nothing is known of it any more: it ends at its next turn. Envoy's cache filter does not survive an answer while it is
    /// still sending its request.
    pub fn lose(&self) {
        self.lost.set(true);
        let scheduler = self.filter.scheduler();
        scheduler.commit();
        self.scheduler.replace(Some(scheduler));
    }

    /// Ends it, of which nothing is known any more.
    pub fn end_lost(&self) {
        if self.replied.replace(true) {
            return;
        }
        if self.responds.replace(true) {
            return self.filter.reset();
        }
        let headers = [(&b"cache-control"[..], &b"no-store"[..])].into_iter();
        self.filter
            .send_response(503, headers, b"", "sluice_worker_lost");
    }

    /// How many bytes of the request's body there are so far.
    pub fn request_body_size(&self) -> usize {
        self.sizes(Half::Request).into_iter().sum()
    }

    /// How many bytes of the response's body are passing.
    pub fn response_body_size(&self) -> usize {
        self.sizes(Half::Response).into_iter().sum()
    }

    /// What Envoy holds of a body, and what has come beyond that.
    fn sizes(&self, half: Half) -> [usize; 2] {
        let [held, received] = Self::parts(half).map(|part| self.filter.body_size(part));
        let same = held > 0
            && match half {
                Half::Request => self.filter.has_received_held_request(),
                Half::Response => self.filter.has_received_held_response(),
            };
        [held, if same { 0 } else { received }]
    }

    const fn parts(half: Half) -> [BodyType; 2] {
        match half {
            Half::Request => [BodyType::BufferedRequest, BodyType::ReceivedRequest],
            Half::Response => [BodyType::BufferedResponse, BodyType::ReceivedResponse],
        }
    }

    /// Bytes of a body: those from `start`, at most `most`.
    pub fn body(&self, half: Half, start: usize, most: usize) -> Vec<u8> {
        let [held, received] = self.sizes(half);
        let [of_held, of_received] = Self::parts(half);
        let mut bytes = Vec::with_capacity(most.min((held + received).saturating_sub(start)));
        self.filter.copy_body(of_held, start, most, &mut bytes);
        if received > 0 && bytes.len() < most {
            let (start, most) = (start.saturating_sub(held), most - bytes.len());
            self.filter.copy_body(of_received, start, most, &mut bytes);
        }
        bytes
    }

    /// Puts `bytes` in place of the first `size` bytes of what is passing of the response's body.
    pub fn replace_response_body(&self, size: usize, bytes: &[u8]) -> bool {
        let [held, received] = self.sizes(Half::Response);
        let [of_held, of_received] = Self::parts(Half::Response);
        let size = size.min(held + received);
        let rest = match bytes {
            [] => Vec::new(),
            _ => self.body(Half::Response, size, usize::MAX),
        };
        // Envoy adds at the end only.
        let dropped = if bytes.is_empty() {
            size
        } else {
            held + received
        };
        let from_held = dropped.min(held);
        let from_received = dropped - from_held;
        let drained = (from_held == 0 || self.filter.drain_body(of_held, from_held))
            && (from_received == 0 || self.filter.drain_body(of_received, from_received));
        let last = if received > 0 || held == 0 {
            of_received
        } else {
            of_held
        };
        drained
            && [bytes, &rest]
                .into_iter()
                .all(|bytes| bytes.is_empty() || self.filter.append_body(last, bytes))
    }
}
