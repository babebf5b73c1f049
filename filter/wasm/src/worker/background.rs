// SPDX-License-Identifier: Apache-2.0
//! What the worker does by calls of its own, and with their answers.

use std::rc::Rc;

use sluice_core::coalescing::hints::Hint;
use sluice_core::coalescing::{Admission, CLAIM_MILLIS, Probed, Release};
use sluice_core::http::demand::Demand;
use sluice_core::link::Purpose;
use sluice_core::metrics::Metric;
use sluice_core::store::entry::Entry;
use sluice_core::workers::StreamId;
use sluice_core::workers::{KeyHash, Millis};

use super::Worker;
use crate::account::result_of;
use crate::answer::Answer;
use crate::calls::{Call, Sent};
use crate::delivery::{self, Bodiless, Passing};
use crate::host::{self, Map};
use crate::response;
use crate::site::Document;
use crate::stream::{NumberedPolicy, Preparation, Stream};

impl Worker {
    /// A client was served a stale response: has it refreshed, if nobody does.
    pub fn refresh(&mut self, stream: &Stream) {
        let pause = pause(&stream.policy);
        let begins = self.turn(stream.id.0, |coalescer, turn| {
            coalescer.begin_refresh(stream.key, pause, turn)
        });
        if !begins {
            return;
        }
        if !self.calls.has_room() {
            self.metrics.count(Metric::LimitsReached, 1);
            self.leave_alone(stream);
            return;
        }
        self.metrics.count(Metric::Refreshes, 1);
        let (target, policy) = (Rc::clone(&stream.target), stream.policy.clone());
        self.calls
            .push(Sent::new(Call::Refresh(stream.key), target, policy));
        self.wake_root();
    }

    /// The origin has failed a request of a client's own, for which there was something stale.
    pub fn leave_alone(&mut self, stream: &Stream) {
        let pause = pause(&stream.policy);
        self.turn(stream.id.0, |coalescer, turn| {
            coalescer.refreshed(stream.key, true, pause, turn);
        });
    }

    /// Whether the origin failed when it was last asked for `key`.
    pub fn is_failing(&mut self, key: KeyHash) -> bool {
        let now = host::monotonic_millis();
        self.coalescer.hints().is_failing(key, now)
    }

    /// The call under that number in a link.
    pub fn call(&self, number: StreamId) -> Option<Sent> {
        self.calls.get(number)
    }

    /// Envoy has the answer to a call, which can be read now, or says that there will be none.
    pub fn call_answered(&mut self, call: u32, answered: bool, body_size: usize) {
        if let Some(sent) = self.calls.take(call) {
            match sent.call {
                Call::Substitute(key) if answered => {
                    let document = Document::answered(body_size);
                    self.end_substitute(key, document.as_ref());
                }
                _ => self.end_call(&sent, answered),
            }
        } else {
            self.journal_answered(call, answered && has_succeeded());
        }
        self.send_calls();
    }

    /// The root context that has made the calls under way is not this one.
    pub(super) fn lose_calls(&mut self) {
        for sent in self.calls.take_all() {
            self.end_call(&sent, false);
        }
    }

    pub(super) fn send_calls(&mut self) {
        for sent in self.calls.take_due() {
            let secrets = self.secrets;
            let made = self.calls.send(sent.clone(), |link| link.encode(secrets));
            if let Err(error) = made {
                self.check(Err(error));
                self.end_call(&sent, false);
            }
        }
    }

    /// Keeps the claims on refreshes that take long.
    pub(super) fn renew_claims(&mut self) {
        let now = host::monotonic_millis();
        for key in self.calls.take_unrenewed(now, CLAIM_MILLIS / 2) {
            self.turn(self.root(), |coalescer, turn| {
                coalescer.refreshing(key, turn);
            });
        }
    }

    /// Has done for a range, a HEAD or a request for changes what it needs before it may take part. False if it has
    /// had all that.
    ///
    /// A range leads itself, once the size is known, so as not to wait for the end; for others, and after it has
    /// left, a fill goes on. A HEAD needs a fill only to have revalidated what the store has. A request for changes
    /// needs one there that goes on when it has its 304.
    fn prepare(&mut self, stream: &Stream) -> bool {
        let key = stream.key;
        let (preparation, call) = match stream.preparation.get() {
            Preparation::None if stream.head => (Preparation::Looked, Call::Look(key)),
            Preparation::None if stream.is_for_part() => (Preparation::Sized, Call::Size(key)),
            Preparation::Done => return false,
            _ => (Preparation::Done, Call::Fill(key)),
        };
        stream.preparation.set(preparation);
        if let Some(waiting) = self.unprepared.get_mut(&call) {
            waiting.push(stream.id);
            return true;
        }
        if !self.calls.has_room_to_prepare() {
            self.metrics.count(Metric::LimitsReached, 1);
            return false;
        }
        self.unprepared.insert(call, vec![stream.id]);
        if matches!(call, Call::Look(_)) {
            self.metrics.count(Metric::StoreProbes, 1);
        }
        self.call_for(stream, call);
        true
    }

    /// What a request goes on for that would go on for `purpose`; `None` if it waits first. A range is
    /// worth no fill that nobody shares: where nothing more can be done for it, it goes to the origin.
    pub fn ready(&mut self, stream: &Stream, purpose: Purpose) -> Option<Purpose> {
        let waits = stream.is_for_part() || stream.wants_headers() || stream.is_led_for();
        let prepares = purpose == Purpose::Alone && waits && stream.policy.policy.coalesce.enabled;
        let fills = matches!(purpose, Purpose::Lead | Purpose::Alone);
        let calls = prepares || (fills && stream.may_have_less());
        if (calls && !self.keep_headers(stream)) || !prepares {
            return Some(purpose);
        }
        if self.prepare(stream) {
            return None;
        }
        if !stream.is_for_part() {
            return Some(Purpose::Alone);
        }
        stream.released.set(Some(Release::Alone));
        Some(Purpose::Bypass)
    }

    /// Keeps what the client has sent, where a call may have to take the place of its request.
    pub fn keep_for_rescue(&mut self, stream: &Stream) {
        if stream.may_have_less() {
            self.keep_headers(stream);
        }
    }

    /// Keeps what the client has sent for calls on its behalf. False if it cannot be read.
    fn keep_headers(&mut self, stream: &Stream) -> bool {
        if !stream.headers.borrow().is_empty() {
            return true;
        }
        let headers = self
            .redirect(stream.id.0)
            .and_then(|()| delivery::headers_for_calls());
        match headers {
            Ok(headers) => *stream.headers.borrow_mut() = headers,
            Err(error) => {
                self.check(Err(error));
                return false;
            }
        }
        true
    }

    fn call_for(&mut self, stream: &Stream, call: Call) {
        let (target, policy) = (Rc::clone(&stream.target), stream.policy.clone());
        let headers = stream.headers.borrow().clone();
        self.calls.push(Sent {
            headers,
            ..Sent::new(call, target, policy)
        });
        self.wake_root();
    }

    /// A request that fills the store and has had less than the object has gone, and its fill with it: one that
    /// nobody can end takes its place. Not of one that the store was believed to have, as nothing is known of what its
    /// client has sent: the next one fetches that.
    pub(super) fn rescue(&mut self, stream: &Stream) {
        let less = !matches!(stream.passing.get(), Passing::Whole);
        let known = !stream.headers.borrow().is_empty();
        let filled = stream.fragile.get() && stream.may_have_less() && less && known;
        let Some(context) = self.fills.context(stream.id).filter(|_| filled) else {
            return;
        };
        if !self.calls.has_room_to_prepare() || self.coalescer.is_committing(stream.key) {
            return;
        }
        // The store would not take the next response before this one has gone. The coalescer sees to that for leaders
        // only.
        if !self.due_answers.iter().any(|(of, _)| *of == context) {
            self.answer_later(context, Answer::Reset);
        }
        self.call_for(stream, Call::Fill(stream.key));
    }

    /// Gives those who wait for the response of `filled`, and ask for changes, the answer that it is to what they demand.
    pub fn answer_followers(
        &mut self,
        filled: &Stream,
        answer: impl Fn(&Demand) -> Option<Bodiless>,
    ) {
        self.answer_alike(filled, |follower| {
            let demand = follower.demand.as_ref();
            let demand = demand.filter(|_| follower.is_led_for());
            demand.and_then(&answer).map(Answer::Bodiless)
        });
    }

    /// Answers those of this worker who wait for the response of `leader`, and to whom `answer` has an answer.
    pub(super) fn answer_alike(
        &mut self,
        leader: &Stream,
        answer: impl Fn(&Rc<Stream>) -> Option<Answer>,
    ) {
        let (now, streams) = (host::monotonic_millis(), &self.streams);
        let answered = self.coalescer.answer_waiting(leader.key, now, |id| {
            let follower = streams.get(&id)?;
            // The headers are what the leader's own policy makes of them.
            let alike = follower.target.cache_key() == leader.target.cache_key()
                && follower.policy.number == leader.policy.number;
            alike.then(|| answer(follower)).flatten()
        });
        for (id, waited, answer) in answered {
            let result = Metric::RequestsCollapsed;
            self.metrics.count(result, 1);
            self.answer_follower(id, waited, result_of(result), answer);
        }
    }

    /// Those who have waited for a call take part now. `context` is that of this event.
    pub fn prepared(&mut self, call: Call, context: u32) {
        let mut may_lead = matches!(call, Call::Size(_));
        for id in self.unprepared.remove(&call).unwrap_or_default() {
            let Some(stream) = self.stream(id) else {
                continue;
            };
            let mut request = stream.request();
            request.may_lead |= may_lead;
            let admission = self.turn(context, |coalescer, turn| coalescer.request(&request, turn));
            let release = match admission {
                Admission::Park => continue,
                Admission::Fresh => Release::Collapsed,
                Admission::Lead => Release::Lead,
                Admission::HitForMiss => Release::HitForMiss,
                Admission::Alone => Release::Alone,
            };
            may_lead &= admission != Admission::Lead;
            self.due_resumes.push_back((id, release));
        }
        self.wake_root();
    }

    /// A question for the size of `key` has been answered: what is too large is not led.
    fn sized(&mut self, key: KeyHash, policy: &NumberedPolicy) {
        let length = host::header(Map::CallResponse, "content-length");
        let length = length
            .ok()
            .flatten()
            .and_then(|length| std::str::from_utf8(&length).ok()?.parse::<u64>().ok());
        let cache = &policy.policy.cache;
        if length.is_some_and(|length| length > cache.max_object_bytes) && has_succeeded() {
            let pause = u64::try_from(cache.hit_for_miss.as_millis()).unwrap_or(u64::MAX);
            let until = host::monotonic_millis().saturating_add(pause);
            self.metrics.count(Metric::HitForMissMarked, 1);
            self.coalescer.hints().set(key, Hint::HitForMiss, until);
        }
    }

    /// What a probe for a flight of `key` has found. Those who asked before a soft purge wait for a response from before it,
    /// and their flight has the key of then.
    fn probed(&mut self, key: KeyHash, sent: &Sent) -> Probed {
        let cache_key = sent.target.cache_key();
        let current = key == self.key_hash(cache_key);
        let outdated = |entry: &Entry<'_>| current && self.is_outdated(entry);
        let probed = response::probed(host::monotonic_millis(), outdated);
        let found = matches!(probed, Probed::Readable { .. });
        if current && found && self.soft_generation(cache_key) > 0 {
            self.confirm(key);
        }
        probed
    }

    fn end_call(&mut self, sent: &Sent, answered: bool) {
        match sent.call {
            Call::Probe(key) => {
                let probed = if answered {
                    self.probed(key, sent)
                } else {
                    Probed::Missing
                };
                self.turn(self.root(), |coalescer, turn| {
                    coalescer.probed(key, probed, turn);
                });
            }
            Call::Look(key) => self.looked(key, answered),
            Call::Fill(_) => self.prepared(sent.call, self.root()),
            Call::Size(key) => {
                if answered {
                    self.sized(key, &sent.policy);
                }
                self.prepared(sent.call, self.root());
            }
            Call::Refresh(key) => {
                let failed = !(answered && has_succeeded());
                if failed {
                    self.metrics.count(Metric::RefreshFailures, 1);
                }
                let pause = pause(&sent.policy);
                self.turn(self.root(), |coalescer, turn| {
                    coalescer.refreshed(key, failed, pause, turn);
                });
            }
            Call::Substitute(key) => self.end_substitute(key, None),
        }
    }
}

/// How long the origin is left alone with a key, with a part of it at random so that the keys of an
/// origin that has come back do not ask it all at once.
fn pause(policy: &NumberedPolicy) -> Millis {
    let interval = policy.policy.cache.retry_interval.as_millis();
    let interval = u64::try_from(interval).unwrap_or(u64::MAX);
    let random = host::random().map_or(0, u64::from_le_bytes);
    interval.saturating_add(random % (interval / 2).saturating_add(1))
}

/// Whether EDGE has answered a refresh as one that brought something.
fn has_succeeded() -> bool {
    let status = host::header(Map::CallResponse, ":status").ok().flatten();
    status.is_some_and(|status| !matches!(status.as_slice(), b"500" | b"502" | b"503" | b"504"))
}
