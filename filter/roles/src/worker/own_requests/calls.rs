// SPDX-License-Identifier: Apache-2.0
//! Background calls: requests that the filter makes itself and sends through the background listener.
//!
//! A call that is due waits for the root's next turn, because the SDK delivers an answer to the context that made the
//! call, and only the root outlives every stream. In EDGE the call arrives as a request at the background listener,
//! whose link has the call's number.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use sluice_core::coalescing::beside::unread::UnreadFills;
use sluice_core::key::CanonicalTarget;
use sluice_core::workers::{KeyHash, Millis, NumberMap, StreamId};
use sluice_store::{LINK_HEADER, Link, PATH_HEADER};

use crate::reply::DueReply;
use crate::reply::substitute::HeldResponse;
use crate::request::call_kind::CallKind;
use crate::request::headers::Header;
use crate::request::policy::NumberedPolicy;
use crate::worker::identity::Identity;
use crate::worker::metrics::Metrics;
use sluice_host::{self as host, Host};

/// The background listener's cluster.
const CLUSTER: &str = "sluice_background";
/// Timer period while calls are under way.
const WATCH_MILLIS: Millis = 1_000;
/// Maximum number of refreshes of one worker at one time.
const MOST_REFRESHES: usize = 128;
/// Maximum number of fills, lookups, questions for sizes, and calls around the store and for variants, of one worker
/// at one time.
const MOST_PREPARATIONS: usize = 128;
/// Maximum number of fetches of written objects of one worker at one time. The others wait.
const MOST_CREATED: usize = 8;

/// A request that the filter makes itself.
#[derive(Clone, Debug)]
pub struct BackgroundCall {
    /// Its kind.
    pub kind: CallKind,
    /// The target that it requests.
    pub target: Rc<CanonicalTarget>,
    /// The policy under which it is made.
    pub policy: NumberedPolicy,
    /// Further headers of the client's request, on which the response may depend.
    pub headers: Vec<Header>,
    /// Whether it repeats a call whose answer was outdated.
    pub is_repeated: bool,
    /// When the claim on a refresh was last renewed.
    pub(in crate::worker) renewed: Millis,
    /// Its number in the link, among the calls of this worker.
    pub(in crate::worker) number: StreamId,
}

impl BackgroundCall {
    /// Whether the call leads for the requests that wait for it.
    pub const fn leads(&self) -> bool {
        matches!(self.kind, CallKind::Fill(_))
    }

    /// Creates a call without further headers.
    pub fn new(kind: CallKind, target: Rc<CanonicalTarget>, policy: NumberedPolicy) -> Self {
        Self {
            kind,
            target,
            policy,
            headers: Vec::new(),
            is_repeated: false,
            renewed: 0,
            number: StreamId(0),
        }
    }

    /// Copy of the call, whose answer is not doubted again.
    pub fn repeated(&self) -> Self {
        Self {
            is_repeated: true,
            ..self.clone()
        }
    }
}

/// Requests that wait for a call.
#[derive(Debug)]
struct WaitingList {
    streams: Vec<StreamId>,
    /// The call that was made for the first of them; `None` while it is being made.
    call: Option<StreamId>,
}

/// The calls of one worker, and the budget of the fills that no client reads.
#[derive(Debug)]
pub struct Calls {
    pub(crate) host: Rc<dyn Host>,
    pub(crate) metrics: Rc<Metrics>,
    /// The budget of fills that no client reads.
    pub unread: UnreadFills,
    due: Vec<BackgroundCall>,
    /// The fetches of written objects that wait for others to end.
    created: VecDeque<BackgroundCall>,
    /// Requests that wait for a call of their key, either for their response or to take part in coalescing
    /// afterwards.
    waiting: HashMap<CallKind, WaitingList>,
    /// Responses that are held until the document with that key has arrived.
    held: NumberMap<KeyHash, Vec<HeldResponse>>,
    /// The replies to requests whose held responses have not ended yet.
    replies: NumberMap<StreamId, DueReply>,
    /// The calls by the number in the link.
    under_way: NumberMap<StreamId, BackgroundCall>,
    /// The number in the link by Envoy's number of the call.
    numbers: NumberMap<u32, StreamId>,
    last: u32,
    /// Whether a call has been queued since [`Calls::take_demand`].
    is_demanding: bool,
}

impl Calls {
    /// No calls.
    pub fn new(host: Rc<dyn Host>, metrics: Rc<Metrics>) -> Self {
        Self {
            host,
            metrics,
            unread: UnreadFills::default(),
            due: Vec::new(),
            created: VecDeque::new(),
            waiting: HashMap::new(),
            held: NumberMap::default(),
            replies: NumberMap::default(),
            under_way: NumberMap::default(),
            numbers: NumberMap::default(),
            last: 0,
            is_demanding: false,
        }
    }

    /// Queues a call for the root's next turn.
    pub fn push(&mut self, call: BackgroundCall) {
        self.last = self.last.wrapping_add(1);
        let number = StreamId(self.last);
        if let Some(waiting) = self.waiting.get_mut(&call.kind) {
            waiting.call.get_or_insert(number);
        }
        let renewed = self.host.monotonic_millis();
        self.due.push(BackgroundCall {
            number,
            renewed,
            ..call
        });
        self.is_demanding = true;
    }

    /// Queues the fetch of a written object.
    pub fn queue_created(&mut self, call: BackgroundCall) {
        self.created.push_back(call);
        self.is_demanding = true;
    }

    /// Whether the root context must get a turn for calls that have been queued since the last call.
    pub fn take_demand(&mut self) -> bool {
        let waits = !(self.due.is_empty() && self.created.is_empty());
        std::mem::take(&mut self.is_demanding) && waits
    }

    /// Has a request wait for a call for which other requests wait already. Returns false if there is none.
    pub fn join(&mut self, call: CallKind, stream: StreamId) -> bool {
        let waiting = self.waiting.get_mut(&call);
        let joined = waiting.map(|waiting| waiting.streams.push(stream));
        joined.is_some()
    }

    /// Has a request wait for a call that is due or under way, and for which no request waits. Returns false if there is
    /// none.
    pub fn join_unawaited(&mut self, call: CallKind, stream: StreamId) -> bool {
        let mut all = self.due.iter().chain(self.under_way.values());
        let number = all.find(|it| it.kind == call).map(|it| it.number);
        if number.is_some() {
            self.await_first(call, stream);
            if let Some(waiting) = self.waiting.get_mut(&call) {
                waiting.call = number;
            }
        }
        number.is_some()
    }

    /// Has a request wait for a call that is made for it.
    fn await_first(&mut self, call: CallKind, stream: StreamId) {
        let streams = vec![stream];
        let waiting = WaitingList {
            streams,
            call: None,
        };
        self.waiting.insert(call, waiting);
    }

    /// Queues a call for the root's next turn, and has a request wait for it.
    pub fn push_for(&mut self, stream: StreamId, call: BackgroundCall) {
        self.await_first(call.kind, stream);
        self.push(call);
    }

    /// Takes the requests that wait for a call.
    pub fn take_waiting(&mut self, call: CallKind) -> Vec<StreamId> {
        let waiting = self.waiting.remove(&call);
        waiting.map_or_else(Vec::new, |waiting| waiting.streams)
    }

    /// Whether the requests that wait for such a call wait for one that is still due or under way.
    pub fn is_awaited(&self, call: CallKind) -> bool {
        let awaited = self.waiting.get(&call).and_then(|waiting| waiting.call);
        let mut all = self.due.iter().chain(self.under_way.values());
        awaited.is_some_and(|awaited| all.any(|call| call.number == awaited))
    }

    /// Holds a response until a document has arrived. Returns true if the document has yet to be requested.
    pub fn hold(&mut self, document: KeyHash, response: HeldResponse) -> bool {
        let held = self.held.entry(document).or_default();
        held.push(response);
        held.len() == 1
    }

    /// Takes the responses that are held for a document.
    pub fn take_held(&mut self, document: KeyHash) -> Vec<HeldResponse> {
        self.held.remove(&document).unwrap_or_default()
    }

    /// Keeps the reply to a request until its held response has ended.
    pub fn keep_reply(&mut self, stream: StreamId, reply: DueReply) {
        self.replies.insert(stream, reply);
    }

    /// Takes the reply that is kept for a request.
    pub fn take_reply(&mut self, stream: StreamId) -> Option<DueReply> {
        self.replies.remove(&stream)
    }

    /// Takes the calls that are due.
    pub fn take_due(&mut self) -> Vec<BackgroundCall> {
        let under_way = self.count(|call| call == CallKind::Created);
        for _ in under_way..MOST_CREATED {
            let Some(call) = self.created.pop_front() else {
                break;
            };
            self.push(call);
        }
        std::mem::take(&mut self.due)
    }

    /// Whether the bound allows one more refresh.
    pub fn has_room(&self) -> bool {
        self.count(|call| matches!(call, CallKind::Refresh(_))) < MOST_REFRESHES
    }

    /// Whether the bound allows one more of the calls for which requests wait.
    pub fn has_room_to_prepare(&self) -> bool {
        let prepares = |call| {
            matches!(
                call,
                CallKind::Fill(_)
                    | CallKind::Look(_)
                    | CallKind::Size(_)
                    | CallKind::Index(_)
                    | CallKind::Around(_)
                    | CallKind::Again(_)
                    | CallKind::Variant(_)
            )
        };
        self.count(prepares) < MOST_PREPARATIONS
    }

    fn count(&self, counts: impl Fn(CallKind) -> bool) -> usize {
        let all = self.due.iter().chain(self.under_way.values());
        all.filter(|call| counts(call.kind)).count()
    }

    /// The timer period in which [`Calls::take_unrenewed`] must be called.
    pub fn tick_period(&self) -> Option<Millis> {
        (!self.under_way.is_empty()).then_some(WATCH_MILLIS)
    }

    /// Sends a call from the root context. Its link carries the secret of `identity`.
    pub fn send(&mut self, call: BackgroundCall, identity: &Identity) -> host::Result<()> {
        let (request, method, timeout) = call.kind.form();
        let link = Link {
            request,
            stream: call.number,
            policy: call.policy.number,
        };
        let link = identity
            .vouching
            .encode(link, &call.policy.policy.site.name);
        let target = &call.target;
        let store_path = identity.store_path(target);
        let own = [
            (":method", method),
            (":scheme", "http"),
            (":authority", target.authority()),
            (":path", target.origin_path()),
            (PATH_HEADER, &store_path),
            (LINK_HEADER, &link),
        ];
        let own = own.map(|(name, value)| (name, value.as_bytes()));
        let theirs = call.headers.iter();
        let theirs = theirs.map(|(name, value)| (name.as_str(), value.as_slice()));
        let headers: Vec<_> = own.into_iter().chain(theirs).collect();
        let envoys = self.host.call(CLUSTER, &headers, None, timeout)?;
        self.numbers.insert(envoys, call.number);
        self.under_way.insert(call.number, call);
        Ok(())
    }

    /// The call with the number in a link.
    pub fn get(&self, number: StreamId) -> Option<BackgroundCall> {
        self.under_way.get(&number).cloned()
    }

    /// Removes the call with Envoy's number `call`, which Envoy has answered.
    pub fn take(&mut self, call: u32) -> Option<BackgroundCall> {
        let number = self.numbers.remove(&call)?;
        self.under_way.remove(&number)
    }

    /// Removes all calls under way. Their answers are lost with the root context that made them.
    pub fn take_all(&mut self) -> Vec<BackgroundCall> {
        self.numbers.clear();
        self.under_way.drain().map(|(_, call)| call).collect()
    }

    /// The keys of refreshes whose claim was last renewed at least `period` ago.
    pub fn take_unrenewed(&mut self, now: Millis, period: Millis) -> Vec<KeyHash> {
        let mut keys = Vec::new();
        for call in self.under_way.values_mut() {
            if let CallKind::Refresh(key) = call.kind
                && call.renewed.saturating_add(period) <= now
            {
                call.renewed = now;
                keys.push(key);
            }
        }
        keys
    }
}
