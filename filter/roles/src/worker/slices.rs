// SPDX-License-Identifier: Apache-2.0
//! The objects that a worker knows to be served in slices, or not to be.

use crate::worker::coalescing::Coalescing;
use crate::worker::coalescing::slice_arrivals::count_bytes;
use crate::worker::keys::Keys;
use crate::worker::roots::Roots;
use std::rc::Rc;

use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::metrics::Metric;
use sluice_core::policy::LargeUrl;
use sluice_core::slices::connections::ConnectionId;
use sluice_core::slices::index::SliceIndex;
use sluice_core::workers::message::Message;
use sluice_core::workers::recent_keys::RecentKeys;
use sluice_core::workers::{KeyHash, Millis, StreamId};

use crate::request::EdgeRequest;
use crate::request::sliced::SlicedResponse;

/// Envoy's property with the number of a client's connection, in eight bytes.
const CONNECTION_ID: &str = "connection\0id";

/// The state of a request that waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued;

/// Facts about one object.
#[derive(Clone, Debug)]
pub enum Knowledge {
    /// The object is served in slices.
    Sliced(Rc<SliceIndex>),
    /// The object is small, or cannot be sliced.
    Whole,
}

/// The objects that one worker knows. Soft purges do not change their keys.
#[derive(Debug)]
pub struct KnownObjects {
    objects: RecentKeys<Knowledge>,
    /// The times until which the index of an object is not asked for again, because the last question has failed or is
    /// under way.
    pauses: RecentKeys<Millis>,
    /// Versions that the origin does not have any more. The store may still have the headers of such a version, for a
    /// moment also after another version is known.
    outdated: RecentKeys<String>,
    /// The URLs of objects in slices. A hard purge changes the key of an object, and a restart takes away its facts.
    large: RecentKeys<()>,
}

impl KnownObjects {
    /// A table for this number of objects. The URLs `stored` are those of objects in slices.
    pub fn new(capacity: usize, stored: &[LargeUrl]) -> Self {
        let mut large = RecentKeys::new(capacity);
        for url in stored {
            large.insert(KeyHash(url.0), ());
        }
        Self {
            objects: RecentKeys::new(capacity),
            pauses: RecentKeys::new(capacity),
            outdated: RecentKeys::new(capacity),
            large,
        }
    }

    /// Changes the number of objects.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.objects.set_capacity(capacity);
        self.pauses.set_capacity(capacity);
        self.outdated.set_capacity(capacity);
        self.large.set_capacity(capacity);
    }

    /// The facts about an object.
    pub fn get(&mut self, key: KeyHash) -> Option<Knowledge> {
        self.objects.get(key).cloned()
    }

    /// The facts about an object, without effect on the bounds of the table.
    pub fn peek(&self, key: KeyHash) -> Option<&Knowledge> {
        self.objects.peek(key)
    }

    /// Whether the object is known to be served in slices.
    pub fn is_sliced(&mut self, key: KeyHash) -> bool {
        matches!(self.objects.get(key), Some(Knowledge::Sliced(_)))
    }

    /// The number of known objects.
    pub fn count(&self) -> usize {
        self.objects.len()
    }

    /// The number of objects that were forgotten to make room since the last call.
    pub fn take_dropped(&mut self) -> usize {
        self.objects.take_dropped()
    }

    /// Whether the object of a URL has been served in slices, as far as this is known. Calls `url` only if any URL is
    /// known.
    pub fn is_large(&self, url: impl FnOnce() -> LargeUrl) -> bool {
        !self.large.is_empty() && self.large.peek(KeyHash(url().0)).is_some()
    }

    /// Records that the object of a URL is served in slices.
    pub fn note_large(&mut self, url: LargeUrl) {
        self.large.insert(KeyHash(url.0), ());
    }

    /// Records the facts about an object.
    pub fn learn(&mut self, key: KeyHash, url: LargeUrl, knowledge: Knowledge) {
        self.pauses.remove(key);
        match &knowledge {
            Knowledge::Sliced(index) => {
                if self.is_outdated_version(key, index.etag()) {
                    self.outdated.remove(key);
                }
                self.note_large(url);
            }
            Knowledge::Whole => self.large.remove(KeyHash(url.0)),
        }
        self.objects.insert(key, knowledge);
    }

    /// Whether this version of an object is the one that is known.
    pub fn has_version(&self, key: KeyHash, etag: &str) -> bool {
        match self.objects.peek(key) {
            Some(Knowledge::Sliced(index)) => index.etag() == etag,
            Some(Knowledge::Whole) | None => false,
        }
    }

    /// Forgets this version of an object. Returns false if another version is known, or none.
    pub fn forget(&mut self, key: KeyHash, etag: &str) -> bool {
        let known = self.has_version(key, etag);
        if known {
            self.objects.remove(key);
        }
        if known || self.objects.peek(key).is_none() {
            self.outdated.insert(key, etag.to_owned());
        }
        known
    }

    /// Whether the origin must describe the object again, because it does not have the version that was known.
    pub fn is_outdated(&self, key: KeyHash) -> bool {
        self.outdated.peek(key).is_some() && self.objects.peek(key).is_none()
    }

    /// Whether the origin does not have this version of an object any more.
    pub fn is_outdated_version(&self, key: KeyHash, etag: &str) -> bool {
        self.outdated.peek(key).is_some_and(|known| known == etag)
    }

    /// Records that the origin has not described the object. Until `until`, it is not asked for again.
    pub fn question_fails(&mut self, key: KeyHash, until: Millis) {
        self.pauses.insert(key, until);
    }

    /// Whether the last question for the index of the object has failed a moment ago, or is under way.
    pub fn is_asked(&self, key: KeyHash, now: Millis) -> bool {
        self.pauses.peek(key).is_some_and(|pause| now < *pause)
    }

    /// Whether the index of the object may be asked for. Until `until`, it is not asked for again.
    pub fn take_question(&mut self, key: KeyHash, now: Millis, until: Millis) -> bool {
        if self.is_asked(key, now) {
            return false;
        }
        self.pauses.insert(key, until);
        true
    }
}

/// Learns the index of an object, and tells the other workers about it if `tells`.
pub fn learn(
    slices: &mut KnownObjects,
    roots: &mut Roots,
    key: KeyHash,
    url: LargeUrl,
    index: SliceIndex,
    tells: bool,
) {
    let index = Rc::new(index);
    slices.learn(key, url, Knowledge::Sliced(Rc::clone(&index)));
    if tells {
        let message = Message::SliceIndex {
            key,
            url,
            index: index.encode(),
        };
        let fault = "a worker did not receive the index of an object";
        roots.tell_others(&message, fault);
    }
}

/// Makes all workers forget this version of an object, because the origin does not have that version any more.
pub fn forget(slices: &mut KnownObjects, roots: &mut Roots, key: KeyHash, etag: &str) {
    if slices.forget(key, etag) {
        let message = Message::SlicesChanged {
            key,
            etag: etag.to_owned(),
        };
        let fault = "a worker did not hear that an object has changed";
        roots.tell_others(&message, fault);
    }
}

/// Whether a request is for the headers of an object, and the version that the store may have is outdated.
pub fn must_validate(keys: &Keys, slices: &KnownObjects, stream: &EdgeRequest) -> bool {
    let target = &stream.target;
    target.is_for_headers() && {
        let object = keys.object_hash(target.whole_key());
        slices.is_outdated(object)
    }
}

/// Takes a turn among the responses in slices of the request's connection. Returns the connection if it is known, or
/// an error if the request waits for its turn.
pub fn take_turn(
    roots: &Roots,
    coalescing: &mut Coalescing,
    stream: &EdgeRequest,
) -> Result<Option<ConnectionId>, Queued> {
    if let Some(client) = stream.repeats {
        return Ok(turn_of(coalescing, client));
    }
    let progress = &stream.progress;
    let former = progress.queued.take();
    // Many clients share the connection of a peer.
    let own = || (!stream.is_of_peer).then(|| connection_of(roots, stream));
    let Some(connection) = former.or_else(|| own().flatten()) else {
        return Ok(None);
    };
    let most = stream.policy.policy.edge.slices.streams;
    let now = coalescing.now();
    if coalescing.sliced.begin(connection, stream.id, most) {
        progress.account.stops_waiting(now);
        publish(coalescing);
        return Ok(Some(connection));
    }
    if former.is_none() {
        progress.account.parks(now);
        coalescing
            .metrics
            .count_of(&stream.policy, Metric::SlicedQueued);
    }
    progress.queued.set(Some(connection));
    Err(Queued)
}

/// The connection of a client whose response in slices has its turn already.
fn turn_of(coalescing: &Coalescing, client: StreamId) -> Option<ConnectionId> {
    let client = coalescing.requests.get(client)?;
    let sliced = client.progress.sliced.borrow();
    sliced.as_ref().and_then(|sliced| sliced.connection)
}

/// Ends a response in slices, and lets the next request of its connection have its turn.
fn give_turn(coalescing: &mut Coalescing, connection: ConnectionId) {
    for stream in coalescing.sliced.end(connection) {
        coalescing
            .wakeups
            .resume(stream, NextStep::Send(StoreRequest::Slice));
    }
    publish(coalescing);
}

/// Publishes the number of responses under way. Their ends need no timer, with which the other gauges are published.
fn publish(coalescing: &Coalescing) {
    let running = coalescing.sliced.running();
    coalescing.metrics.publish(&[(Metric::SlicedNow, running)]);
}

/// The connection of a request's client.
fn connection_of(roots: &Roots, stream: &EdgeRequest) -> Option<ConnectionId> {
    let host = roots.act_as(stream.id.0).ok()?;
    let number = host.property(CONNECTION_ID).ok().flatten()?;
    let number = <[u8; 8]>::try_from(number.as_slice()).ok()?;
    Some(ConnectionId(u64::from_le_bytes(number)))
}

/// Notes the end of a request for a slice, or of a response in slices. The response was cut if it had begun, one of its
/// slices has failed, and its client has not left before.
pub fn close(coalescing: &mut Coalescing, closed: &EdgeRequest) {
    let bytes = closed.body.bytes.get();
    if let Some(slice) = &closed.slice {
        count_bytes(&coalescing.metrics, closed, slice);
        let is_awaited = coalescing.requests.get(slice.of.client).is_some();
        slice.ends(bytes, is_awaited);
    }
    if let Some(connection) = closed.progress.queued.take() {
        coalescing.sliced.leave(connection, closed.id);
    }
    let sliced = closed.progress.sliced.take();
    if let Some(connection) = sliced.as_ref().and_then(|sliced| sliced.connection) {
        give_turn(coalescing, connection);
    }
    let cut = |sliced: &Rc<SlicedResponse>| {
        let whole = bytes == sliced.plan.content_length();
        sliced.responded.get() && sliced.failed.get() && !sliced.passes.get() && !whole
    };
    if sliced.is_some_and(|sliced| cut(&sliced)) {
        coalescing
            .metrics
            .count_of(&closed.policy, Metric::SlicedCut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::http::syntax::field_value::FieldValue;
    use sluice_core::policy::SlicedLengths;
    use sluice_core::slices::index::{Described, IndexTimes};

    fn index(etag: &str) -> Knowledge {
        let described = Described {
            status: 200,
            etag: Some(FieldValue::new(etag.as_bytes())),
            last_modified: None,
            length: Some(2),
            accepts_ranges: true,
        };
        let lengths = SlicedLengths { above: 1, most: 3 };
        let index = SliceIndex::of(
            &described,
            [].into_iter(),
            lengths,
            IndexTimes::default(),
            0,
        );
        Knowledge::Sliced(Rc::new(index.unwrap()))
    }

    #[test]
    fn a_version_that_is_gone_stays_outdated_until_the_origin_has_it_again() {
        let (key, url) = (KeyHash(1), LargeUrl(2));
        let mut objects = KnownObjects::new(8, &[]);
        objects.learn(key, url, index("\"1\""));
        assert!(objects.forget(key, "\"1\""));
        assert!(objects.is_outdated(key), "no version is known");
        objects.learn(key, url, index("\"2\""));
        assert!(!objects.is_outdated(key));
        assert!(objects.is_outdated_version(key, "\"1\""));
        assert!(!objects.is_outdated_version(key, "\"2\""));
        objects.learn(key, url, index("\"1\""));
        assert!(!objects.is_outdated_version(key, "\"1\""));
    }
}
