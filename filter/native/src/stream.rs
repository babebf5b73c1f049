// SPDX-License-Identifier: Apache-2.0
//! A stream: Envoy's side of it, and the role's context.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use sluice_host::Half;
use sluice_host::headers::Headers;
use sluice_roles::callbacks::StreamContext;

use crate::abi::{BodyType, Filter, HeaderMapType, Scheduler};
use crate::aid::Aid;
use crate::reply::Reply;
use crate::slicer::Slicer;
use crate::slicer::carrier::SliceCarrier;

/// The handler of a stream.
pub enum Part {
    /// A worker's carrier.
    Carrier,
    /// A small filter.
    Aid(Aid),
    /// The slicer.
    Slicer(Rc<Slicer>),
    /// The carrier of a worker's requests for slices.
    SliceCarrier(Rc<SliceCarrier>),
    /// A role.
    Role(RefCell<Box<dyn StreamContext>>),
}

/// A stream on one worker.
pub struct Stream {
    /// The number by which the roles know it; 0 for a carrier.
    pub context: u32,
    /// Envoy's side, until [`Stream::ended`].
    pub filter: Filter,
    /// Its handler.
    pub part: Part,
    /// Whether it is in a chain behind the cache filter.
    pub upstream: bool,
    /// Whether its method is HEAD, if the method is known.
    head: Cell<Option<bool>>,
    /// Whether it is over: Envoy has destroyed it, or will.
    pub ended: Cell<bool>,
    /// Whether its worker has been lost, with the role's state of this stream.
    pub lost: Cell<bool>,
    /// Whether a response, or the filter's own reply, has begun to pass.
    pub responds: Cell<bool>,
    /// Whether the filter's own reply is sent to the client.
    pub replied: Cell<bool>,
    /// The half whose headers the role is handling.
    pub handling: Cell<Option<Half>>,
    /// Whether that half continues, even if the role returns a pause, because it was resumed meanwhile.
    pub resumed: Cell<bool>,
    /// Wakes it after its worker has been lost.
    pub scheduler: RefCell<Option<Scheduler>>,
    /// A reply of the filter that has not passed the role yet.
    pub reply: RefCell<Option<Reply>>,
}

impl Stream {
    /// A new stream.
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

    /// Whether its response passes without a role: it is the filter's own reply, or the stream has no role.
    pub fn passes(&self) -> bool {
        let has_role = !matches!(
            self.part,
            Part::Aid(_) | Part::Slicer(_) | Part::SliceCarrier(_)
        );
        self.replied.get() || !has_role
    }

    /// Notes the method when the role first reads the request's headers, because the role may change it later.
    pub fn note_method(&self, headers: &Headers) {
        if self.head.get().is_none() {
            self.head.set(Some(headers.is(":method", "HEAD")));
        }
    }

    /// Whether the method of the client's request is HEAD.
    pub fn is_head(&self) -> bool {
        self.head.get().unwrap_or_else(|| {
            let method = self.filter.header(HeaderMapType::Request, ":method");
            method.is_some_and(|method| method == b"HEAD")
        })
    }

    /// Sends the filter's own reply. It replaces a response that has begun to pass, if there is one.
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

    /// Ends the stream in its next turn, because the role's state is lost. It cannot end at once, because Envoy's
    /// cache filter crashes on an answer while it is still sending its request.
    pub fn lose(&self) {
        self.lost.set(true);
        let scheduler = self.filter.scheduler();
        scheduler.commit();
        self.scheduler.replace(Some(scheduler));
    }

    /// Ends a stream whose role's state is lost.
    pub fn end_lost(&self) {
        if self.replied.replace(true) {
            return;
        }
        if self.responds.replace(true) {
            return self.filter.reset("sluice_worker_lost");
        }
        let headers = [(&b"cache-control"[..], &b"no-store"[..])].into_iter();
        self.filter
            .send_response(503, headers, b"", "sluice_worker_lost");
    }

    /// Number of bytes of the request's body that have arrived so far.
    pub fn request_body_size(&self) -> usize {
        self.sizes(Half::Request).into_iter().sum()
    }

    /// Number of bytes of the response's body that are passing.
    pub fn response_body_size(&self) -> usize {
        self.sizes(Half::Response).into_iter().sum()
    }

    /// Sizes of the part of a body that Envoy buffers, and of the part that has arrived beyond that.
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

    /// Reads bytes of a body: those from `start`, at most `most`.
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

    /// Replaces the first `size` bytes of the passing part of the response's body by `bytes`.
    pub fn replace_response_body(&self, size: usize, bytes: &[u8]) -> bool {
        let [held, received] = self.sizes(Half::Response);
        let [of_held, of_received] = Self::parts(Half::Response);
        let size = size.min(held + received);
        let rest = match bytes {
            [] => Vec::new(),
            _ => self.body(Half::Response, size, usize::MAX),
        };
        // Envoy can only append bytes.
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
