// SPDX-License-Identifier: Apache-2.0
//! What all contexts of a VM share. There is one VM per worker thread.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::hash::Hasher;
use std::rc::Rc;
use std::time::Duration;

use siphasher::sip::SipHasher13;
use sluice_core::board::{KeyHash, WorkerId};
use sluice_core::coalescer::{Coalescer, Effect, Release, Turn};
use sluice_core::flight::{FlightPolicy, StreamId};
use sluice_core::host::HostError;
use sluice_core::key::CanonicalTarget;
use sluice_core::link::{BYPASS_SENTINEL, LINK_HEADER, Link, Purpose};
use sluice_core::message::Message;
use sluice_core::metrics::Metric;
use sluice_core::policy::Policy;

use crate::answer::Answer;
use crate::fills::Fills;
use crate::host::{self, Half, Level, Map, Queue, SharedData};
use crate::identity::{hash_key, queue_name, take_number};
use crate::metrics::Metrics;
use crate::stream::{NumberedPolicy, Stream};

/// The `vm_id` in Envoy's configuration, by which workers find each other's queues.
const VM_ID: &str = "sluice";
/// The internal listener's cluster through which the v1 store is probed.
const PROBE_CLUSTER: &str = "sluice_probe";
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// Requests that are resumed in one turn.
const RESUME_BATCH: usize = 16;
/// Timer period while only the origin is waited for.
const WATCH_MILLIS: u64 = 1_000;
/// Policies that are kept for requests which came under them.
const POLICIES: usize = 8;

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
    coalescer: Coalescer,
    secret: u64,
    hash_key: (u64, u64),
    root: u32,
    queue: Option<Queue>,
    queues: HashMap<WorkerId, Queue>,
    policies: VecDeque<NumberedPolicy>,
    streams: HashMap<StreamId, Rc<Stream>>,
    fills: Fills,
    probes: HashMap<u32, KeyHash>,
    due_probes: Vec<(KeyHash, Rc<CanonicalTarget>)>,
    due_answers: Vec<(u32, Answer)>,
    due_resumes: VecDeque<(StreamId, Release)>,
    tick_period: u64,
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
            coalescer: Coalescer::new(number, policy.limits.hints),
            secret: u64::from_le_bytes(host::random()?),
            hash_key: (low, high),
            root: 0,
            queue: None,
            queues: HashMap::new(),
            policies: VecDeque::new(),
            streams: HashMap::new(),
            fills: Fills::default(),
            probes: HashMap::new(),
            due_probes: Vec::new(),
            due_answers: Vec::new(),
            due_resumes: VecDeque::new(),
            tick_period: 0,
            logged: 0,
            redirected: false,
        })
    }

    /// A queue belongs to the root context that registered it last, so each new one registers it and
    /// looks for news that went to its predecessor.
    fn adopt(&mut self, root: u32, policy: Policy) -> host::Result<NumberedPolicy> {
        self.root = root;
        self.queue = Some(host::register_queue(&queue_name(self.coalescer.worker()))?);
        self.coalescer.hints().set_capacity(policy.limits.hints);
        let number = self
            .policies
            .back()
            .map_or(1, |last| last.number.wrapping_add(1));
        let flights = FlightPolicy::of(&policy);
        let numbered = NumberedPolicy {
            number,
            policy: Rc::new(policy),
            flights,
        };
        self.policies.push_back(numbered.clone());
        if self.policies.len() > POLICIES {
            self.policies.pop_front();
        }
        // The timer of the former root context goes with it.
        self.tick_period = 0;
        self.turn(root, |coalescer, turn| coalescer.rescan_all(turn));
        Ok(numbered)
    }

    /// The hash under which the board and the hints know a key. Keyed, so that nobody can choose URLs
    /// that wait for each other.
    pub fn key_hash(&self, cache_key: &str) -> KeyHash {
        let mut hasher = SipHasher13::new_with_keys(self.hash_key.0, self.hash_key.1);
        hasher.write(cache_key.as_bytes());
        KeyHash(hasher.finish())
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
        link.encode(self.secret)
    }

    /// What a link header says, if it is this VM's.
    pub fn decode_link(&self, value: &[u8]) -> Option<Link> {
        Link::decode(value, self.secret)
    }

    /// Makes a request known to ORIGIN and to the waiting lists.
    pub fn open(&mut self, stream: &Rc<Stream>) {
        self.streams.insert(stream.id, Rc::clone(stream));
    }

    /// The client of a request has gone, or has its response.
    pub fn close(&mut self, stream: StreamId) {
        if self.streams.remove(&stream).is_some() {
            self.forget_answer(stream.0);
            self.turn(stream.0, |coalescer, turn| coalescer.closed(stream, turn));
        }
    }

    /// A request is on its way to the origin.
    pub fn fill_begins(&mut self, stream: StreamId, context: u32) {
        self.fills.begin(stream, context, host::monotonic_millis());
        self.keep_time();
        self.come_back(context);
    }

    /// Its response headers have come.
    pub fn fill_answers(&mut self, stream: StreamId) {
        self.fills.answer(stream, host::monotonic_millis());
    }

    /// More of its body has come.
    pub fn fill_progresses(&mut self, stream: StreamId) {
        let now = host::monotonic_millis();
        self.fills.progress(stream, now);
        self.coalescer.fill_progress(stream, now);
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

    /// Ends the fills whose origin is silent.
    fn end_stalled(&mut self) {
        for stalled in self.fills.stalled(host::monotonic_millis()) {
            self.metrics.count(Metric::OriginStalls, 1);
            self.warn(|| "sluice: the origin was silent for too long".to_owned());
            let answer = if stalled.answered {
                Answer::Reset
            } else {
                Answer::Stalled
            };
            self.answer_later(stalled.context, answer);
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
        let mut effects = Vec::new();
        let mut store = SharedData;
        let now = host::monotonic_millis();
        let mut turn = Turn {
            store: &mut store,
            now,
            effects: &mut effects,
        };
        let result = event(&mut self.coalescer, &mut turn);
        for effect in effects {
            self.carry_out(effect);
        }
        self.resume_some();
        self.keep_time();
        self.come_back(context);
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
        let hints = self.coalescer.hints().len();
        self.metrics
            .set_gauges(self.coalescer.parked(), self.coalescer.flights(), hints);
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
                self.metrics.count(Metric::FollowersResumed, 1);
                self.metrics.record(Metric::WaitMilliseconds, waited);
                self.due_resumes.push_back((stream, release));
            }
            Effect::Fail {
                stream,
                status,
                waited,
            } => {
                self.metrics.count(Metric::FollowersResumed, 1);
                self.metrics.count(Metric::FollowersFailed, 1);
                self.metrics.record(Metric::WaitMilliseconds, waited);
                if let Some(follower) = self.stream(stream) {
                    follower.answered.set(true);
                    self.answer_later(stream.0, Answer::Failed { status });
                }
            }
            Effect::Notify { worker, message } => {
                let notified = self.notify(worker, message);
                self.check(notified);
            }
            Effect::Abort { stream } => match self.fills.context(stream) {
                Some(context) => self.answer_later(context, Answer::Reset),
                None => self.turn(self.root, |coalescer, turn| {
                    coalescer.fill_broken(stream, turn)
                }),
            },
            Effect::Probe { key, target } => {
                // The SDK hands an answer to the context that is active when the call is made. That must
                // be the root, which outlives every stream, so the call waits for the root's next turn.
                self.due_probes.push((key, target));
                self.wake_root();
            }
        }
    }

    /// Asks for a turn of the root context, after this one.
    fn wake_root(&mut self) {
        let woken = self.queue.map_or(Ok(()), |queue| host::enqueue(queue, &[]));
        self.check(woken);
    }

    /// Answers the paused request of `context`, but not before the root's next turn. Within another
    /// stream's callback Envoy would stop that stream too, and the v1 cache filter does not survive an
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
            let answered = self.redirect(context).and_then(|()| answer.send());
            self.check(answered);
        }
        self.come_back(self.root);
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
            Release::HitForMiss | Release::WaitTimeout => Purpose::Bypass,
            Release::Alone => Purpose::Alone,
        };
        stream.released.set(Some(release));
        self.redirect(id.0)?;
        let sent = self.send(&stream, purpose);
        // Whatever went wrong, a request must not stay parked.
        let resumed = host::resume(Half::Request);
        sent.and(resumed)
    }

    /// Gives the effective context's request the headers for `purpose`.
    pub fn send(&self, stream: &Stream, purpose: Purpose) -> host::Result<()> {
        stream.purpose.set(purpose);
        host::set_header(Map::Request, LINK_HEADER, &self.encode_link(stream.link()))?;
        match purpose {
            Purpose::Bypass => {
                if stream.released.get() != Some(Release::WaitTimeout) {
                    self.metrics.count(Metric::RequestsHitForMiss, 1);
                }
                host::set_header(Map::Request, "if-range", BYPASS_SENTINEL)
            }
            // The store fills from GET only; Envoy sends no body to a client that asked with HEAD.
            Purpose::Lead if stream.head => host::set_header(Map::Request, ":method", "GET"),
            _ => Ok(()),
        }
    }

    fn notify(&mut self, worker: WorkerId, message: Message) -> host::Result<()> {
        let queue = match self.queues.get(&worker) {
            Some(queue) => *queue,
            None => {
                let queue = host::resolve_queue(VM_ID, &queue_name(worker))?;
                self.queues.insert(worker, queue);
                queue
            }
        };
        host::enqueue(queue, &message.encode())
    }

    /// Runs the timer while it is needed, and no faster than that.
    fn keep_time(&mut self) {
        let watch = if self.fills.is_empty() {
            0
        } else {
            WATCH_MILLIS
        };
        let period = self.coalescer.tick_period().unwrap_or(watch);
        if period != self.tick_period {
            self.publish_gauges();
            let set = self
                .redirect(self.root)
                .and_then(|()| host::set_tick_period(u32::try_from(period).unwrap_or(0)));
            if set.is_ok() {
                self.tick_period = period;
            }
            self.check(set);
        }
    }
}

/// What the root context does.
impl Worker {
    /// Whether that context is the one with the timer and the queue.
    pub fn is_root(&self, context: u32) -> bool {
        self.root == context
    }

    /// Takes the messages out of this worker's queue.
    pub fn receive(&mut self) {
        let Some(queue) = self.queue else { return };
        loop {
            match host::dequeue(queue) {
                Ok(Some(bytes)) => {
                    if let Some(message) = Message::decode(&bytes) {
                        self.turn(self.root, |coalescer, turn| {
                            coalescer.message(message, turn)
                        });
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.check(Err(error));
                    break;
                }
            }
        }
        self.resume_some();
        self.send_answers();
        self.send_probes();
    }

    /// Time has passed.
    pub fn tick(&mut self) {
        self.turn(self.root, |coalescer, turn| coalescer.tick(turn));
        self.end_stalled();
        self.send_probes();
        self.publish_gauges();
    }

    /// A probe of the store has been answered: the remaining seconds of freshness, if the store has it.
    pub fn probe_answered(&mut self, call: u32, remaining: Option<u64>) {
        let Some(key) = self.probes.remove(&call) else {
            return;
        };
        self.turn(self.root, |coalescer, turn| {
            let until = remaining.map(|seconds| turn.now.saturating_add(seconds * 1_000));
            coalescer.probed(key, until, turn);
        });
        self.send_probes();
    }

    fn send_probes(&mut self) {
        for (key, target) in std::mem::take(&mut self.due_probes) {
            match self.send_probe(&target) {
                Ok(call) => {
                    self.probes.insert(call, key);
                }
                Err(error) => {
                    self.check(Err(error));
                    self.turn(self.root, |coalescer, turn| {
                        coalescer.probed(key, None, turn)
                    });
                }
            }
        }
    }

    fn send_probe(&self, target: &CanonicalTarget) -> host::Result<u32> {
        let number = self.policies.back().map_or(0, |policy| policy.number);
        let link = Link {
            purpose: Purpose::Probe,
            stream: StreamId(0),
            policy: number,
        };
        host::http_call(
            PROBE_CLUSTER,
            &[
                (":method", "HEAD"),
                (":scheme", "http"),
                (":authority", target.authority()),
                (":path", target.path()),
                (LINK_HEADER, &self.encode_link(link)),
            ],
            PROBE_TIMEOUT,
        )
    }
}
