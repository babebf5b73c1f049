// SPDX-License-Identifier: Apache-2.0
//! What all contexts of a VM share. There is one VM per worker thread.

mod background;
mod hot;
mod lengths;
mod looks;
mod purging;
mod substitutes;

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::hash::Hasher;
use std::rc::Rc;

use siphasher::sip::SipHasher13;
use sluice_core::coalescing::flight::FlightPolicy;
use sluice_core::coalescing::varying::Varying;
use sluice_core::coalescing::{Coalescer, Effect, Release, Turn};
use sluice_core::host::HostError;
use sluice_core::hot::HotTier;
use sluice_core::key::vary::{TooLong, VaryNames};
use sluice_core::link::{
    BYPASS_SENTINEL, LINK_HEADER, Link, METHOD_HEADER, ORIGINAL_PATH_HEADER, Purpose, Secrets,
    Vouched,
};
use sluice_core::metrics::Metric;
use sluice_core::policy::Policy;
use sluice_core::store::body_lengths::BodyLengths;
use sluice_core::workers::News;
use sluice_core::workers::StreamId;
use sluice_core::workers::message::Message;
use sluice_core::workers::{KeyHash, Millis, WorkerId};

use crate::account;
use crate::answer::Answer;
use crate::calls::{Call, Calls, Sent};
use crate::delivery;
use crate::fills::{Fallback, Fills};
use crate::headers::Headers;
use crate::host::{self, Half, Level, Map, Queue, SharedData};
use crate::identity::{hash_key, process_secret, queue_name, take_number};
use crate::metrics::Metrics;
use crate::revalidation::Revalidation;
use crate::site::Substitutes;
use crate::stream::{NumberedPolicy, Preparation, Stream};
use purging::Purging;
pub use purging::Unavailable;

/// The `vm_id` in Envoy's configuration, by which workers find each other's queues.
const VM_ID: &str = "sluice";
/// Requests that are resumed in one turn.
const RESUME_BATCH: usize = 16;
/// The status of a request whose origin is silent.
const GATEWAY_TIMEOUT: u16 = 504;

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// Runs `operation` on this VM's worker; `None` before the first configuration.
pub fn with<R>(operation: impl FnOnce(&mut Worker) -> R) -> Option<R> {
    WORKER.with(|worker| worker.try_borrow_mut().ok()?.as_mut().map(operation))
}

/// Brings the worker under a new policy, whose root context gets the timer and the queue.
///
/// # Errors
/// The host refused what the worker cannot do without.
pub fn configure(root: u32, policy: Policy) -> host::Result<NumberedPolicy> {
    WORKER.with(|worker| {
        let Ok(mut worker) = worker.try_borrow_mut() else {
            return Err(HostError { status: u32::MAX });
        };
        if worker.is_none() {
            *worker = Some(Worker::start(&policy)?);
        }
        match worker.as_mut() {
            Some(worker) => worker.adopt(root, policy),
            None => Err(HostError { status: u32::MAX }),
        }
    })
}

/// One worker's part of the filter.
#[derive(Debug)]
pub struct Worker {
    /// Counters and gauges.
    pub metrics: Metrics,
    /// Distinguishes this VM's fills from all others, past ones included.
    pub nonce: u64,
    body_lengths: BodyLengths,
    hot: HotTier,
    coalescer: Coalescer,
    secrets: Secrets,
    hash_key: (u64, u64),
    /// All root contexts that have a policy and are there, in the order of their configuration.
    roots: Vec<u32>,
    queue: Option<Queue>,
    queues: HashMap<WorkerId, Queue>,
    policies: VecDeque<NumberedPolicy>,
    streams: HashMap<StreamId, Rc<Stream>>,
    varying: Varying,
    fills: Fills,
    calls: Calls,
    purging: Purging,
    /// Requests that wait for a call of their key, before they are known to the coalescer.
    unprepared: HashMap<Call, Vec<StreamId>>,
    substitutes: Substitutes,
    due_answers: Vec<(u32, Answer)>,
    due_resumes: VecDeque<(StreamId, Release)>,
    tick_period: Millis,
    logged: u64,
    /// The effective context is another than that of the callback.
    redirected: bool,
}

impl Worker {
    fn start(policy: &Policy) -> host::Result<Self> {
        let mut store = SharedData;
        let number = take_number(&mut store)?;
        let [low, high] = hash_key(&mut store)?;
        Ok(Self {
            metrics: Metrics::define(),
            nonce: u64::from_le_bytes(host::random()?),
            body_lengths: BodyLengths::new(policy.limits.hints),
            hot: HotTier::new(policy.hot),
            coalescer: Coalescer::new(number, policy.limits.hints),
            secrets: Secrets {
                process: process_secret(&mut store)?,
                vm: u64::from_le_bytes(host::random()?),
            },
            hash_key: (low, high),
            roots: Vec::new(),
            queue: None,
            queues: HashMap::new(),
            policies: VecDeque::new(),
            streams: HashMap::new(),
            varying: Varying::new(policy.limits.varying_urls),
            fills: Fills::default(),
            calls: Calls::default(),
            purging: Purging::default(),
            unprepared: HashMap::new(),
            substitutes: Substitutes::default(),
            due_answers: Vec::new(),
            due_resumes: VecDeque::new(),
            tick_period: 0,
            logged: 0,
            redirected: false,
        })
    }

    fn adopt(&mut self, root: u32, policy: Policy) -> host::Result<NumberedPolicy> {
        self.roots.push(root);
        self.register()?;
        self.coalescer.hints().set_capacity(policy.limits.hints);
        self.body_lengths.set_capacity(policy.limits.hints);
        self.varying.set_capacity(policy.limits.varying_urls);
        let number = self
            .policies
            .back()
            .map_or(1, |last| last.number.wrapping_add(1));
        self.begin_purging(&policy)?;
        // Keys and headers may be others now.
        let last = self.policies.back();
        if last.is_none_or(|last| *last.policy != policy) {
            self.hot = HotTier::new(policy.hot);
        }
        let flights = FlightPolicy::of(&policy);
        let numbered = NumberedPolicy {
            number,
            policy: Rc::new(policy),
            flights,
        };
        // Root contexts and requests that came under a policy keep it.
        self.policies
            .retain(|known| Rc::strong_count(&known.policy) > 1);
        self.policies.push_back(numbered.clone());
        self.begin_anew();
        Ok(numbered)
    }

    /// The newest root context, which has the timer and the queue; 0 is none.
    fn root(&self) -> u32 {
        self.roots.last().copied().unwrap_or(0)
    }

    /// Has the newest root context, which the host must take for the caller, take over the timer and the queue. That
    /// belongs to the one that has registered it last.
    fn register(&mut self) -> host::Result<()> {
        self.queue = Some(host::register_queue(&queue_name(self.coalescer.worker()))?);
        // The timer of the former one is of no more use.
        self.tick_period = 0;
        Ok(())
    }

    /// Looks for what went to the former root context: news, answers to its calls, and its next turn.
    fn begin_anew(&mut self) {
        self.lose_calls();
        self.lose_entries();
        self.turn(self.root(), |coalescer, turn| coalescer.rescan_all(turn));
        self.wake_root();
    }

    /// A root context goes. It may be the one with the timer and the queue and not the oldest: where a policy is taken
    /// back before all requests under it have ended, Envoy goes on with the root context that it had.
    pub fn lose_root(&mut self, root: u32) {
        let serves = self.is_root(root);
        self.roots.retain(|known| *known != root);
        if !serves || self.roots.is_empty() {
            return;
        }
        let registered = self
            .redirect(self.root())
            .and_then(|()| self.register())
            .and_then(|()| host::set_tick_period(0));
        self.check(registered);
        self.begin_anew();
    }

    /// The hash under which the board and the hints know a key. Keyed, so that nobody can choose URLs
    /// that wait for each other.
    pub fn key_hash(&self, cache_key: &str) -> KeyHash {
        let mut hasher = SipHasher13::new_with_keys(self.hash_key.0, self.hash_key.1);
        hasher.write(cache_key.as_bytes());
        // After a soft purge nothing is known of the key.
        match self.soft_generation(cache_key) {
            0 => {}
            soft => hasher.write_u64(soft),
        }
        KeyHash(hasher.finish())
    }

    fn url_hash(&self, url: &str) -> KeyHash {
        let mut hasher = SipHasher13::new_with_keys(self.hash_key.0, self.hash_key.1);
        hasher.write(url.as_bytes());
        KeyHash(hasher.finish())
    }

    /// The request headers that responses for a URL vary with, as far as is known.
    pub fn varies(&mut self, url: &str) -> Option<VaryNames> {
        if self.varying.is_empty() {
            return None;
        }
        let url = self.url_hash(url);
        self.varying.get(url, host::monotonic_millis())
    }

    /// Responses for a URL vary with `names`.
    pub fn learn(&mut self, url: &str, names: VaryNames) {
        let url = self.url_hash(url);
        self.varying.learn(url, names, host::monotonic_millis());
    }

    /// This worker's number.
    pub fn id(&self) -> WorkerId {
        self.coalescer.worker()
    }

    /// The newest policy.
    pub fn current_policy(&self) -> Option<NumberedPolicy> {
        self.policies.back().cloned()
    }

    /// The policy of that number, if it is not long gone.
    pub fn policy(&self, number: u32) -> Option<NumberedPolicy> {
        self.policies
            .iter()
            .find(|policy| policy.number == number)
            .cloned()
    }

    /// The value of the link header for `link`.
    pub fn encode_link(&self, link: Link) -> String {
        link.encode(self.secrets)
    }

    /// What a link header says, if it is the filter's.
    pub fn decode_link(&self, value: &[u8]) -> Option<Vouched> {
        Link::decode(value, self.secrets)
    }

    /// Makes a request known to ORIGIN and to the waiting lists.
    pub fn open(&mut self, stream: &Rc<Stream>) {
        self.streams.insert(stream.id, Rc::clone(stream));
    }

    /// The client of a request has gone, or has its response.
    pub fn close(&mut self, stream: StreamId) {
        if let Some(closed) = self.streams.remove(&stream) {
            if let Some(capture) = closed.capture.take() {
                self.drop_capture(&capture);
            }
            self.forget_answer(stream.0);
            if self.coalescer.takes_part(stream) {
                self.turn(stream.0, |coalescer, turn| coalescer.closed(stream, turn));
            }
            self.rescue(&closed);
        }
    }

    /// The origin is being asked on behalf of a request.
    pub fn origin_is_asked(&self, stream: StreamId) {
        if let Some(stream) = self.streams.get(&stream) {
            stream.account.asks(host::monotonic_millis());
        }
    }

    /// The origin has begun to answer it.
    pub fn origin_answers(&self, stream: StreamId) {
        if let Some(stream) = self.streams.get(&stream) {
            stream.account.is_answered(host::monotonic_millis());
        }
    }

    /// What the store has for a request has expired on the way there, and is served all the same.
    pub fn store_is_late(&self, stream: StreamId) {
        if let Some(stream) = self.streams.get(&stream) {
            stream.late.set(true);
        }
    }

    /// A request is on its way to the origin.
    pub fn fill_begins(&mut self, stream: StreamId, context: u32, fallback: Option<Fallback>) {
        let now = host::monotonic_millis();
        self.fills.begin(stream, context, fallback, now);
        self.keep_time();
        self.come_back(context);
    }

    /// Its response headers have come. True if they are not the origin's, which was given up.
    pub fn fill_answers(&mut self, stream: StreamId) -> bool {
        self.fills.answer(stream)
    }

    /// The origin has failed it with `status`, and the store serves what it has. `context` is that of this event.
    pub fn fill_keeps(
        &mut self,
        stream: StreamId,
        status: u16,
        revalidation: &Revalidation,
        context: u32,
    ) {
        if let Some(stream) = self.streams.get(&stream) {
            stream.kept.set(Some(status));
        }
        self.fill_keeps_unwritten(stream, revalidation, context);
    }

    /// The store serves what it has, and asks again the next time. The origin is known to fail: those who wait for
    /// this must know it as well, or each of them would ask.
    pub fn fill_keeps_unwritten(
        &mut self,
        stream: StreamId,
        revalidation: &Revalidation,
        context: u32,
    ) {
        let left = revalidation.left().saturating_mul(1_000);
        self.turn(context, |coalescer, turn| {
            coalescer.fill_kept(stream, turn.now.saturating_add(left), turn);
        });
    }

    /// More of its body has come.
    pub fn fill_progresses(&mut self, stream: StreamId) {
        self.coalescer
            .fill_progress(stream, host::monotonic_millis());
    }

    /// ORIGIN's context of a request has gone, with its response complete or not.
    pub fn fill_is_over(&mut self, stream: StreamId, context: u32, complete: bool) {
        self.forget_answer(context);
        if self.fills.end(stream, context) && !complete {
            self.turn(context, |coalescer, turn| {
                coalescer.fill_broken(stream, turn);
            });
        }
    }

    /// Lets the store serve what it has where the origin takes too long.
    fn give_up_overdue(&mut self) {
        for overdue in self.fills.overdue(host::monotonic_millis()) {
            self.metrics.count(Metric::OriginOverdue, 1);
            self.warn(|| {
                "sluice: the origin was too slow, and a stale response is served".to_owned()
            });
            self.fill_keeps(
                overdue.stream,
                GATEWAY_TIMEOUT,
                &overdue.revalidation,
                self.root(),
            );
            self.answer_later(overdue.context, Answer::Keep(overdue.revalidation));
        }
    }

    /// The request, while its client is there.
    pub fn stream(&self, stream: StreamId) -> Option<Rc<Stream>> {
        self.streams.get(&stream).cloned()
    }

    /// Lets the coalescer handle an event that has come to `context`, and carries out what follows.
    pub fn turn<R>(
        &mut self,
        context: u32,
        event: impl FnOnce(&mut Coalescer, &mut Turn<'_, SharedData>) -> R,
    ) -> R {
        let result = self.event(event);
        self.resume_some();
        self.keep_time();
        self.come_back(context);
        result
    }

    /// The same within a turn.
    fn event<R>(
        &mut self,
        event: impl FnOnce(&mut Coalescer, &mut Turn<'_, SharedData>) -> R,
    ) -> R {
        let mut effects = Vec::new();
        let mut store = SharedData;
        let mut turn = Turn {
            store: &mut store,
            now: host::monotonic_millis(),
            effects: &mut effects,
        };
        let result = event(&mut self.coalescer, &mut turn);
        for effect in effects {
            self.carry_out(effect);
        }
        result
    }

    fn come_back(&mut self, context: u32) {
        if std::mem::take(&mut self.redirected) {
            let restored = host::set_effective_context(context);
            self.check(restored);
        }
    }

    fn redirect(&mut self, context: u32) -> host::Result<()> {
        self.redirected = true;
        host::set_effective_context(context)
    }

    /// Publishes how much there is of everything.
    fn publish_gauges(&mut self) {
        let values = [
            (Metric::ParkedNow, self.coalescer.parked()),
            (Metric::FlightsNow, self.coalescer.flights()),
            (Metric::HintsNow, self.coalescer.hints().len()),
        ];
        self.metrics.set_gauges(&values);
        self.publish_hot();
    }

    /// Logs an abnormal event, at most one a second.
    pub fn warn(&mut self, message: impl FnOnce() -> String) {
        let now = host::monotonic_millis();
        if self.logged == 0 || self.logged + 1_000 <= now {
            self.logged = now;
            host::log(Level::Warn, &message());
        }
    }

    /// A host call has failed: counts it, and logs what came of it.
    pub fn fault(&mut self, consequence: &str, error: HostError) {
        self.metrics.count(Metric::HostErrors, 1);
        self.warn(|| format!("sluice: {consequence}: {error}"));
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Count(metric, amount) => self.metrics.count(metric, amount),
            Effect::Resume {
                stream,
                release,
                waited,
            } => {
                self.has_waited(stream, waited);
                self.due_resumes.push_back((stream, release));
            }
            Effect::Fail {
                stream,
                status,
                waited,
            } => {
                self.metrics.count(Metric::FollowersFailed, 1);
                self.answer_follower(stream, waited, account::FAILED, Answer::Failed { status });
            }
            Effect::Learn { target, names } => self.learn(target.url(), names),
            Effect::Notify { worker, message } => {
                let notified = self.notify(worker, &message);
                self.check(notified);
            }
            Effect::Abort { stream } => match self.fills.context(stream) {
                Some(context) => self.answer_later(context, Answer::Reset),
                None => self.event(|coalescer, turn| coalescer.fill_broken(stream, turn)),
            },
            Effect::Probe { key, target } => {
                if let Some(policy) = self.policies.back().cloned() {
                    self.calls.push(Sent::new(Call::Probe(key), target, policy));
                    self.wake_root();
                }
            }
        }
    }

    /// A request has waited so long, and waits no more.
    fn has_waited(&mut self, stream: StreamId, waited: Millis) {
        self.metrics.count(Metric::FollowersResumed, 1);
        self.metrics.record(Metric::WaitMilliseconds, waited);
        if let Some(follower) = self.streams.get(&stream) {
            follower.account.has_waited(waited);
        }
    }

    /// Answers a request that has waited so long, and came to that `result`.
    fn answer_follower(
        &mut self,
        stream: StreamId,
        waited: Millis,
        result: &'static str,
        answer: Answer,
    ) {
        self.has_waited(stream, waited);
        if let Some(follower) = self.streams.get(&stream) {
            follower.answered.set(true);
            follower.account.results_in(result);
            self.answer_later(stream.0, answer);
        }
    }

    /// Asks for a turn of the root context, after this one.
    fn wake_root(&mut self) {
        let woken = self.queue.map_or(Ok(()), |queue| host::enqueue(queue, &[]));
        self.check(woken);
    }

    /// Answers the paused request of `context`, but not before the root's next turn. Within another
    /// stream's callback Envoy would stop that stream too, and Envoy's cache filter does not survive an
    /// answer from ORIGIN while it is still sending the request.
    pub fn answer_later(&mut self, context: u32, answer: Answer) {
        self.due_answers.push((context, answer));
        self.wake_root();
    }

    /// The context has gone, and needs no answer.
    pub fn forget_answer(&mut self, context: u32) {
        self.due_answers
            .retain(|(answered, _)| *answered != context);
    }

    fn send_answers(&mut self) {
        for (context, answer) in std::mem::take(&mut self.due_answers) {
            if matches!(answer, Answer::Reset) {
                self.metrics.count(Metric::FillsAborted, 1);
            }
            let answered = self.redirect(context).and_then(|()| answer.send());
            self.check(answered);
        }
        self.come_back(self.root());
    }

    fn check(&mut self, result: host::Result<()>) {
        if let Err(error) = result {
            self.fault("a request went on uncoalesced", error);
        }
    }

    /// Resumes a batch of those who have been released, and leaves the next to the root's next turn: the
    /// first responses go out before the last requests go on.
    fn resume_some(&mut self) {
        for _ in 0..RESUME_BATCH {
            let Some((stream, release)) = self.due_resumes.pop_front() else {
                return;
            };
            let resumed = self.resume(stream, release);
            self.check(resumed);
        }
        if !self.due_resumes.is_empty() {
            self.wake_root();
        }
    }

    fn resume(&mut self, id: StreamId, release: Release) -> host::Result<()> {
        let Some(stream) = self.stream(id) else {
            return Ok(());
        };
        let purpose = match release {
            Release::Collapsed => Purpose::Collapsed,
            Release::Lead => Purpose::Lead,
            Release::HitForMiss | Release::WaitTimeout | Release::NoRoom => Purpose::Bypass,
            Release::Alone => Purpose::Alone,
            Release::Varies => return self.readmit(&stream),
            Release::Unneeded => {
                self.end_unneeded(&stream);
                return Ok(());
            }
        };
        stream.released.set(Some(release));
        let Some(purpose) = self.ready(&stream, purpose) else {
            return Ok(());
        };
        self.redirect(id.0)?;
        let sent = self.send(&stream, purpose);
        // Whatever went wrong, a request must not stay parked.
        let resumed = host::resume(Half::Request);
        sent.and(resumed)
    }

    /// Takes a request whose URL proves to vary to the coalescer again, under the key of its variant.
    fn readmit(&mut self, stream: &Rc<Stream>) -> host::Result<()> {
        let again = self.retarget(stream);
        let (stream, purpose) = match &again {
            Ok(Ok(stream)) => {
                let admitted = self.event(|coalescer, turn| stream.admission(coalescer, turn));
                (stream, admitted)
            }
            Ok(Err(TooLong)) | Err(_) => (stream, Some(Purpose::Bypass)),
        };
        if stream.for_others && purpose.is_some_and(|purpose| purpose != Purpose::Lead) {
            self.end_unneeded(stream);
            return again.map(|_| ());
        }
        let Some(purpose) = purpose.and_then(|purpose| self.ready(stream, purpose)) else {
            return Ok(());
        };
        self.redirect(stream.id.0)?;
        let sent = self.send(stream, purpose);
        // Whatever went wrong, a request must not stay parked.
        let resumed = host::resume(Half::Request);
        again.map(|_| ()).and(sent).and(resumed)
    }

    /// Ends a fill in the background that waits for another one, which those for whom it is there do not need any more.
    fn end_unneeded(&mut self, fill: &Stream) {
        fill.answered.set(true);
        self.answer_later(fill.id.0, Answer::Outcome { status: 204 });
    }

    fn retarget(&mut self, stream: &Stream) -> host::Result<Result<Rc<Stream>, TooLong>> {
        self.redirect(stream.id.0)?;
        let headers = Headers::new(host::header_pairs(Map::Request)?);
        let mut target = stream.target.unqualified();
        self.qualify_generation(&stream.policy.policy, &mut target);
        if let Err(too_long) = self.qualify(&stream.policy.policy, &mut target, &headers) {
            return Ok(Err(too_long));
        }
        if stream.preparation.get() == Preparation::Looked {
            target = target.for_headers();
        }
        if !headers.has(ORIGINAL_PATH_HEADER) {
            keep_path(headers.get(":path").unwrap_or_default(), target.path())?;
        }
        host::set_header(Map::Request, ":path", target.path())?;
        let key = self.key_hash(target.cache_key());
        let stream = Rc::new(stream.retargeted(key, Rc::new(target)));
        self.open(&stream);
        Ok(Ok(stream))
    }

    /// Gives the effective context's request the headers for `purpose`.
    pub fn send(&mut self, stream: &Stream, purpose: Purpose) -> host::Result<()> {
        stream.purpose.set(purpose);
        if purpose == Purpose::Lead {
            stream.account.leads();
        }
        // It has none: Envoy would look for one in an index of all headers, which it would make for that.
        host::add_header(Map::Request, LINK_HEADER, &self.encode_link(stream.link()))?;
        if matches!(purpose, Purpose::Lead | Purpose::Alone) && self.must_revalidate(stream) {
            stream.forced.set(true);
            self.metrics.count(Metric::PurgeRevalidations, 1);
            host::set_header(Map::Request, "cache-control", "no-cache")?;
        }
        match purpose {
            Purpose::Bypass => {
                let result = match stream.released.get() {
                    None | Some(Release::HitForMiss) => Some(Metric::RequestsHitForMiss),
                    Some(Release::NoRoom) => Some(Metric::RequestsMiss),
                    Some(_) => None,
                };
                if let Some(result) = result {
                    self.metrics.count(result, 1);
                    stream.account.results_in(account::result_of(result));
                }
                host::set_header(Map::Request, "if-range", BYPASS_SENTINEL)?;
                stream.demand.as_ref().map_or(Ok(()), delivery::put_back)
            }
            Purpose::Refresh => host::set_header(Map::Request, "cache-control", "no-cache"),
            // The stores fill from GET only; Envoy sends no body to a client that asked with HEAD.
            _ if stream.target.is_for_headers() => make_get(),
            Purpose::Lead if stream.head => make_get(),
            _ => Ok(()),
        }
    }

    fn notify(&mut self, worker: WorkerId, message: &Message) -> host::Result<()> {
        self.enqueue_for(worker, &message.encode())
    }

    fn enqueue_for(&mut self, worker: WorkerId, message: &[u8]) -> host::Result<()> {
        let queue = match self.queues.get(&worker) {
            Some(queue) => *queue,
            None => {
                let queue = host::resolve_queue(VM_ID, &queue_name(worker))?;
                self.queues.insert(worker, queue);
                queue
            }
        };
        host::enqueue(queue, message)
    }

    /// The timer period that is needed; 0 is none.
    fn needed_period(&self) -> Millis {
        let needed = [
            self.coalescer.tick_period(),
            self.fills.tick_period(),
            self.calls.tick_period(),
            self.purging.tick_period(),
        ];
        needed.into_iter().flatten().min().unwrap_or(0)
    }

    /// Runs the timer where it is needed, and often enough. Whether less would do is for [`Worker::tick`] to see, so that
    /// one request after the other does not start and stop it.
    fn keep_time(&mut self) {
        let period = self.needed_period();
        if period > 0 && (self.tick_period == 0 || period < self.tick_period) {
            self.set_period(period);
        }
    }

    fn set_period(&mut self, period: Millis) {
        let set = self
            .redirect(self.root())
            .and_then(|()| host::set_tick_period(u32::try_from(period).unwrap_or(0)));
        if set.is_ok() {
            self.tick_period = period;
        }
        self.check(set);
    }
}

/// Makes a GET of the effective context's HEAD.
fn make_get() -> host::Result<()> {
    host::set_header(Map::Request, METHOD_HEADER, "HEAD")?;
    host::set_header(Map::Request, ":method", "GET")
}

/// Keeps the client's path for the access log and traces, where the store is to be sent another.
pub fn keep_path(sent: &[u8], other: &str) -> host::Result<()> {
    if sent == other.as_bytes() {
        return Ok(());
    }
    match std::str::from_utf8(sent) {
        Ok(path) => host::set_header(Map::Request, ORIGINAL_PATH_HEADER, path),
        Err(_) => Ok(()),
    }
}

/// What the root context does.
impl Worker {
    /// Whether that context is the one with the timer and the queue.
    pub fn is_root(&self, context: u32) -> bool {
        self.root() == context
    }

    /// Takes the messages out of this worker's queue.
    pub fn receive(&mut self) {
        let Some(queue) = self.queue else { return };
        loop {
            match host::dequeue(queue) {
                Ok(Some(bytes)) => {
                    if let Some(message) = Message::decode(&bytes) {
                        self.turn(self.root(), |coalescer, turn| {
                            coalescer.message(message, turn)
                        });
                    } else if let Some(news) = News::decode(&bytes) {
                        self.receive_news(news);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.check(Err(error));
                    break;
                }
            }
        }
        self.go_on_as_root();
        // A request that was resumed may wait again, and a call has to be watched.
        self.keep_time();
        self.come_back(self.root());
    }

    /// Time has passed. What is due is done here as well, in case that nothing has come through the queue.
    pub fn tick(&mut self) {
        self.turn(self.root(), |coalescer, turn| coalescer.tick(turn));
        self.give_up_overdue();
        self.renew_claims();
        self.go_on_as_root();
        let period = self.needed_period();
        if period != self.tick_period {
            self.set_period(period);
        }
        self.publish_gauges();
    }

    /// Does what only the root context can do, or what had to wait for its turn.
    fn go_on_as_root(&mut self) {
        self.resume_some();
        self.send_answers();
        self.send_calls();
        self.end_purges();
    }
}
