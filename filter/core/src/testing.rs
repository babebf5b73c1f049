// SPDX-License-Identifier: Apache-2.0
//! A host for tests: workers, what they share, a store and an origin, in one thread and without a clock.
//!
//! [`FakeHost`] plays what lies between a client and the origin. It calls the [`Coalescer`] of each
//! worker as the filter does, and carries out the effects. What takes time in the world (an answer of
//! the origin, a message on its way, a timer) happens when the test says so, in any order. It panics as
//! soon as a rule is broken that holds in every interleaving; see [`FakeHost::check`].
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod shared_data;
mod store;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

pub use shared_data::{Calls, FakeSharedData};
pub use store::FakeStore;

use crate::coalescing::board::{FlightKey, Slot};
use crate::coalescing::flight::{FlightPolicy, Leader, Phase, Role};
use crate::coalescing::hints::Hint;
use crate::coalescing::{
    Admission, Coalescer, Effect, FillVerdict, LeaderResponse, Probed, Release, Request, Turn,
};
use crate::key::CanonicalTarget;
use crate::key::vary::VaryNames;
use crate::link::Purpose;
use crate::metrics::Metric;
use crate::workers::StreamId;
use crate::workers::message::Message;
use crate::workers::shared_table::SharedRecord as _;
use crate::workers::{FlightId, KeyHash, Millis, WorkerId};

/// For how long a key counts as uncacheable after a response that was.
pub const HIT_FOR_MISS: Millis = 120_000;
/// For how long what is stored is served from an error of the origin's on.
pub const STALE_IF_ERROR: Millis = 600_000;

/// A flight on the board: its key, its number, the end of its lease.
pub type Lease = (KeyHash, FlightId, Millis);

/// A request, by position in [`FakeHost::clients`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client(pub usize);

/// A request at the origin, by position in [`FakeHost::fetches`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FetchId(pub usize);

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// On the waiting list.
    Parked,
    /// Let go, and about to ask the store.
    Resumed(Release),
    /// At the origin, without response headers.
    Fetching(FetchId),
    /// On its way back, with the body still coming from that fetch.
    Reading(FetchId),
    /// On its way back, with all of the body there.
    Draining,
    /// Over.
    Over(Ending),
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a whole response.
    Served,
    /// With the error that its leader got.
    Failed(u16),
    /// With half a response.
    Truncated,
    /// Its client left, or its worker died.
    Left,
    /// Without one: a fill in the background that nobody needs.
    Unneeded,
}

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A GET.
    Get,
    /// A HEAD.
    Head,
    /// A GET whose client has the object: its whole answer is 304.
    Conditional {
        /// Whether a fill in the background was to lead for it.
        led_for: bool,
    },
    /// A fill in the background, which no client ends.
    Background,
}

/// A request and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct ClientRecord {
    /// Position of its worker.
    pub seat: usize,
    /// Its key.
    pub key: KeyHash,
    /// What it is.
    pub kind: Kind,
    /// What the coalescer made of it.
    pub admission: Admission,
    /// How it left the waiting list.
    pub release: Option<Release>,
    /// What it asked the store for.
    pub purpose: Purpose,
    /// Where it is.
    pub stage: Stage,
}

/// How far a request at the origin has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchPhase {
    /// No answer yet.
    Sent,
    /// The body is coming; `until` is the end of its freshness if it is for the store.
    Body {
        /// The end of its freshness.
        until: Option<Millis>,
    },
    /// Over, in whatever way.
    Over,
}

/// A request at the origin.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    /// Who caused it.
    pub client: Client,
    /// Its key.
    pub key: KeyHash,
    /// What for.
    pub purpose: Purpose,
    /// Whether the store takes its response, if it can be stored.
    pub fills: bool,
    /// How far it has come.
    pub phase: FetchPhase,
}

/// What the origin answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A response that can be stored.
    Storable,
    /// One that cannot.
    Uncacheable,
    /// One that could, but the store has no room.
    NoRoom,
    /// An error.
    Failed(u16),
    /// One that could be stored under the key of its variant, which this key is not.
    Varying,
    /// An error, in whose place what is stored is served, if there is something.
    Kept,
}

#[derive(Debug)]
struct Seat {
    /// `None` while the worker is dead.
    coalescer: Option<Coalescer>,
    probes: VecDeque<KeyHash>,
    /// Keys whose responses the worker knows to vary.
    varying: BTreeSet<KeyHash>,
}

impl Seat {
    const fn empty() -> Self {
        Self {
            coalescer: None,
            probes: VecDeque::new(),
            varying: BTreeSet::new(),
        }
    }
}

/// The whole of it.
#[derive(Debug)]
pub struct FakeHost {
    /// The time.
    pub now: Millis,
    /// For how long a response that can be stored is fresh.
    pub ttl: Millis,
    /// What the workers share.
    pub data: FakeSharedData,
    /// Whether an abort waits for [`FakeHost::carry_out_aborts`].
    pub slow_aborts: bool,
    /// Whether no fill in the background leads for anyone, as its call fails.
    pub calls_fail: bool,
    /// The rules for requests that come from now on.
    pub policy: FlightPolicy,
    /// All requests so far.
    pub clients: Vec<ClientRecord>,
    /// All requests to the origin so far.
    pub fetches: Vec<Fetch>,
    /// All effects so far.
    pub effects: Vec<(WorkerId, Effect)>,
    target: Rc<CanonicalTarget>,
    store: FakeStore,
    seats: Vec<Seat>,
    queues: BTreeMap<WorkerId, VecDeque<Vec<u8>>>,
    last_worker: u16,
    resumed: VecDeque<Client>,
    aborts: VecDeque<Client>,
    counters: BTreeMap<Metric, u32>,
    /// Who held a lease when the last event began, and whether the board could fail in it.
    leases_before: BTreeMap<KeyHash, FlightId>,
    faulty_before: bool,
    /// [`FakeHost::board`] as of so many writes.
    board: RefCell<(u32, Vec<Lease>)>,
}

impl FakeHost {
    /// A process with that many workers.
    pub fn new(policy: FlightPolicy, workers: usize, target: CanonicalTarget) -> Self {
        let mut host = Self {
            now: 1_000,
            ttl: 3_600_000,
            data: FakeSharedData::default(),
            slow_aborts: false,
            calls_fail: false,
            policy,
            clients: Vec::new(),
            fetches: Vec::new(),
            effects: Vec::new(),
            target: Rc::new(target),
            store: FakeStore::default(),
            seats: Vec::new(),
            queues: BTreeMap::new(),
            last_worker: 0,
            resumed: VecDeque::new(),
            aborts: VecDeque::new(),
            counters: BTreeMap::new(),
            leases_before: BTreeMap::new(),
            faulty_before: false,
            board: RefCell::default(),
        };
        for seat in 0..workers {
            host.seats.push(Seat::empty());
            host.revive(seat);
        }
        host
    }

    /// The store, for what happens to it by itself.
    pub fn store(&mut self) -> &mut FakeStore {
        &mut self.store
    }

    /// The coalescer of a worker that lives.
    pub fn coalescer(&mut self, seat: usize) -> Option<&mut Coalescer> {
        self.seats.get_mut(seat)?.coalescer.as_mut()
    }

    /// Number of workers, dead ones included.
    pub fn workers(&self) -> usize {
        self.seats.len()
    }

    /// Where that request is.
    pub fn stage(&self, client: Client) -> Stage {
        self.clients[client.0].stage
    }

    /// What a counter counts, over all workers.
    pub fn counter(&self, metric: Metric) -> u32 {
        self.counters.get(&metric).copied().unwrap_or(0)
    }

    /// Flights on the board, with the end of their leases.
    pub fn board(&self) -> Vec<Lease> {
        let mut seen = self.board.borrow_mut();
        if seen.0 != self.data.writes() {
            let slots = self
                .data
                .values()
                .map(|(_, value)| Slot::decode(value).unwrap_or_default());
            let leases = slots
                .flat_map(|slot| slot.leases().collect::<Vec<_>>())
                .collect();
            *seen = (self.data.writes(), leases);
        }
        seen.1.clone()
    }

    /// Leases that have not run out.
    pub fn leases(&self) -> BTreeMap<KeyHash, FlightId> {
        let lasting = self
            .board()
            .into_iter()
            .filter(|(_, _, expires)| *expires > self.now);
        lasting.map(|(key, id, _)| (key, id)).collect()
    }

    /// Whether that worker lives.
    pub fn lives(&self, worker: WorkerId) -> bool {
        (0..self.workers()).any(|seat| self.worker(seat) == Some(worker))
    }

    /// Messages under way to a worker.
    pub fn messages(&self, seat: usize) -> usize {
        let worker = self.worker(seat);
        worker
            .and_then(|worker| self.queues.get(&worker))
            .map_or(0, VecDeque::len)
    }

    /// Probes of a worker that have no answer yet.
    pub fn probes(&self, seat: usize) -> usize {
        self.seats[seat].probes.len()
    }

    /// Requests on waiting lists.
    pub fn parked(&self) -> usize {
        self.clients
            .iter()
            .filter(|client| client.stage == Stage::Parked)
            .count()
    }

    /// Requests to the origin that are under way.
    pub fn open_fetches(&self) -> Vec<FetchId> {
        let open = |id: &FetchId| self.fetches[id.0].phase != FetchPhase::Over;
        (0..self.fetches.len()).map(FetchId).filter(open).collect()
    }

    /// Requests that are not over.
    pub fn open_clients(&self) -> Vec<Client> {
        let open = |client: &Client| !matches!(self.stage(*client), Stage::Over(_));
        (0..self.clients.len()).map(Client).filter(open).collect()
    }

    fn worker(&self, seat: usize) -> Option<WorkerId> {
        self.seats[seat].coalescer.as_ref().map(Coalescer::worker)
    }
}

/// What happens to workers.
impl FakeHost {
    /// Time passes.
    pub fn advance(&mut self, millis: Millis) {
        self.now += millis;
    }

    /// The timer of a worker, if it wants one. Says whether it did.
    pub fn tick(&mut self, seat: usize) -> bool {
        let wanted = self
            .coalescer(seat)
            .is_some_and(|worker| worker.tick_period().is_some());
        if wanted {
            self.turn(seat, |coalescer, turn| coalescer.tick(turn));
            self.run();
        }
        wanted
    }

    /// The timers of all workers.
    pub fn tick_all(&mut self) {
        for seat in 0..self.workers() {
            self.tick(seat);
        }
    }

    /// The oldest message to a worker arrives.
    pub fn deliver(&mut self, seat: usize) {
        let Some(message) = self.next_message(seat) else {
            return;
        };
        let Some(Message::Flight(message)) = Message::decode(&message) else {
            panic!("a message of ours");
        };
        self.turn(seat, |coalescer, turn| coalescer.message(message, turn));
        self.run();
    }

    /// All messages arrive, and those that they lead to.
    pub fn deliver_all(&mut self) {
        while let Some(seat) = (0..self.workers()).find(|seat| self.messages(*seat) > 0) {
            self.deliver(seat);
        }
    }

    /// The oldest message to a worker is lost.
    pub fn lose(&mut self, seat: usize) {
        self.next_message(seat);
    }

    fn next_message(&mut self, seat: usize) -> Option<Vec<u8>> {
        let worker = self.worker(seat)?;
        self.queues.get_mut(&worker)?.pop_front()
    }

    /// The oldest probe of a worker is answered.
    pub fn answer_probe(&mut self, seat: usize) {
        let Some(key) = self.seats[seat].probes.pop_front() else {
            return;
        };
        let readable = |until| Probed::Readable { until };
        let found = self.store.look_up(key, self.now);
        self.answer_probe_with(seat, key, found.map_or(Probed::Missing, readable));
    }

    /// A probe of a worker for `key` has found this.
    pub fn answer_probe_with(&mut self, seat: usize, key: KeyHash, probed: Probed) {
        self.turn(seat, |coalescer, turn| coalescer.probed(key, probed, turn));
        self.run();
    }

    /// The store has nothing for the oldest probe of a worker, and no room.
    pub fn refuse_probe(&mut self, seat: usize) {
        if let Some(key) = self.seats[seat].probes.pop_front() {
            self.turn(seat, |coalescer, turn| {
                coalescer.probed(key, Probed::NoRoom, turn)
            });
            self.run();
        }
    }

    /// The answer to the oldest probe of a worker is lost.
    pub fn lose_probe(&mut self, seat: usize) {
        self.seats[seat].probes.pop_front();
    }

    /// A worker looks for what it may have missed, as after a policy update.
    pub fn rescan_all(&mut self, seat: usize) {
        self.turn(seat, |coalescer, turn| coalescer.rescan_all(turn));
        self.run();
    }

    /// A worker's VM dies, and with it all that it was doing.
    pub fn kill(&mut self, seat: usize) {
        self.seats[seat] = Seat::empty();
        for client in self.open_clients() {
            if self.clients[client.0].seat == seat {
                self.detach(client);
            }
        }
        self.run();
    }

    /// A dead worker gets a new VM, with a number of its own.
    pub fn revive(&mut self, seat: usize) {
        if self.seats[seat].coalescer.is_none() {
            self.last_worker += 1;
            self.seats[seat].coalescer = Some(Coalescer::new(WorkerId(self.last_worker), 64));
        }
    }
}

/// What clients do.
impl FakeHost {
    /// A GET comes.
    pub fn get(&mut self, seat: usize, key: u64) -> Client {
        self.arrive(seat, key, Kind::Get)
    }

    /// A HEAD comes. It stands for all that waits for others and cannot lead.
    pub fn head(&mut self, seat: usize, key: u64) -> Client {
        self.arrive(seat, key, Kind::Head)
    }

    /// A GET comes whose client has the object.
    pub fn conditional(&mut self, seat: usize, key: u64) -> Client {
        self.arrive(seat, key, Kind::Conditional { led_for: false })
    }

    /// A request comes. A worker that is dead answers by itself.
    pub fn arrive(&mut self, seat: usize, key: u64, kind: Kind) -> Client {
        let client = self.come(seat, KeyHash(key), kind);
        self.run();
        client
    }

    fn come(&mut self, seat: usize, key: KeyHash, kind: Kind) -> Client {
        let client = Client(self.clients.len());
        self.clients.push(ClientRecord {
            seat,
            key,
            kind,
            admission: Admission::Alone,
            release: None,
            purpose: Purpose::Alone,
            stage: Stage::Over(Ending::Failed(503)),
        });
        if self.seats[seat].varying.contains(&key) {
            self.clients[client.0].key = variant(key, client);
        }
        self.admit(client);
        client
    }

    fn admit(&mut self, client: Client) {
        let is_led_for = self.is_led_for(client);
        let admission = self.with_request(client, |coalescer, request, turn| {
            let mut request = request.clone();
            request.may_lead &= !is_led_for;
            coalescer.request(&request, turn)
        });
        let Some(admission) = admission else {
            return;
        };
        if is_led_for && admission == Admission::Alone {
            self.lead_in_background(client);
            return;
        }
        self.clients[client.0].admission = admission;
        let leads = matches!(admission, Admission::Lead | Admission::Park);
        if self.clients[client.0].kind == Kind::Background && !leads {
            self.end_unneeded(client);
            return;
        }
        match admission {
            Admission::Park => self.clients[client.0].stage = Stage::Parked,
            Admission::Fresh => self.enter(client, Purpose::Fresh),
            Admission::HitForMiss => self.enter(client, Purpose::Bypass),
            Admission::Alone => self.enter(client, Purpose::Alone),
            Admission::Lead => {
                self.check_lead(client);
                self.enter(client, Purpose::Lead);
            }
        }
    }

    fn is_led_for(&self, client: Client) -> bool {
        self.clients[client.0].kind == Kind::Conditional { led_for: false }
    }

    /// A fill in the background leads for a request, which takes part then.
    fn lead_in_background(&mut self, client: Client) {
        let ClientRecord { seat, key, .. } = self.clients[client.0];
        self.clients[client.0].kind = Kind::Conditional { led_for: true };
        self.clients[client.0].release = None;
        if !self.calls_fail {
            self.come(seat, key, Kind::Background);
        }
        self.admit(client);
    }

    /// There is no need for a fill in the background.
    fn end_unneeded(&mut self, fill: Client) {
        self.clients[fill.0].stage = Stage::Over(Ending::Unneeded);
        self.closed(fill);
    }

    /// Those who wait on its worker for a fill in the background have their 304 with its headers.
    fn answer_followers(&mut self, fill: Client) {
        let ClientRecord {
            seat, key, kind, ..
        } = self.clients[fill.0];
        if kind != Kind::Background {
            return;
        }
        let (clients, now) = (self.clients.clone(), self.now);
        let asks = |stream: StreamId| {
            let client = clients.get(stream.0 as usize)?;
            matches!(client.kind, Kind::Conditional { .. }).then_some(())
        };
        let answered = self
            .coalescer(seat)
            .map(|coalescer| coalescer.answer_waiting(key, now, asks));
        for (stream, ..) in answered.unwrap_or_default() {
            let follower = self.unpark(stream);
            self.set_stage(follower, Stage::Over(Ending::Served));
        }
    }

    /// The store has no room for the response, of which those who wait for it on its worker get a copy.
    pub fn share_copy(&mut self, fetch: FetchId) {
        let Fetch { client, key, .. } = self.fetches[fetch.0];
        let (seat, now) = (self.clients[client.0].seat, self.now);
        let answered = self
            .coalescer(seat)
            .map(|coalescer| coalescer.answer_waiting(key, now, Some));
        for (stream, ..) in answered.unwrap_or_default() {
            let follower = self.unpark(stream);
            self.set_stage(follower, Stage::Over(Ending::Served));
        }
        self.event(client, |coalescer, stream, turn| {
            coalescer.fill_copied(stream, turn);
        });
        self.fetches[fetch.0].phase = FetchPhase::Body { until: None };
        self.set_stage(client, Stage::Reading(fetch));
        self.run();
    }

    /// Whether a client has its whole answer while its own fill goes on.
    pub fn has_its_304(&self, client: Client) -> bool {
        let asks = matches!(self.clients[client.0].kind, Kind::Conditional { .. });
        let Stage::Reading(fetch) = self.stage(client) else {
            return false;
        };
        let Fetch {
            client: owner,
            phase,
            ..
        } = self.fetches[fetch.0];
        let fills = matches!(phase, FetchPhase::Body { until: Some(_) });
        asks && owner == client && fills
    }

    /// A client leaves before its response has ended.
    pub fn abort(&mut self, client: Client) {
        if matches!(self.stage(client), Stage::Over(_)) {
            return;
        }
        let filling = match self.stage(client) {
            Stage::Reading(fetch) => Some(fetch),
            _ => None,
        };
        let rescued = self.has_its_304(client);
        self.detach(client);
        self.closed(client);
        if let Some(fetch) = filling {
            self.guard(client, fetch);
        }
        self.run();
        if rescued {
            let ClientRecord { seat, key, .. } = self.clients[client.0];
            self.come(seat, key, Kind::Background);
            self.run();
        }
    }

    /// ORIGIN ends a fill whose client has gone when more of the body comes, at the latest.
    fn guard(&mut self, client: Client, fetch: FetchId) {
        let Fetch {
            client: owner,
            phase,
            ..
        } = self.fetches[fetch.0];
        let told = self.aborts.contains(&client);
        if owner == client && phase != FetchPhase::Over && !told {
            self.cancel(fetch);
        }
    }

    /// Fills are aborted as the coalescers have asked, and they are told.
    pub fn carry_out_aborts(&mut self) {
        while let Some(client) = self.aborts.pop_front() {
            let open = |fetch: &Fetch| fetch.client == client && fetch.phase != FetchPhase::Over;
            if let Some(fetch) = self.fetches.iter().rposition(open) {
                self.cancel(FetchId(fetch));
            }
            self.event(client, |coalescer, stream, turn| {
                coalescer.fill_broken(stream, turn)
            });
        }
        self.run();
    }

    /// Envoy refuses to abort, or does not tell.
    pub fn lose_aborts(&mut self) {
        self.aborts.clear();
    }

    /// A client has its whole response.
    pub fn close(&mut self, client: Client) {
        if self.stage(client) == Stage::Draining {
            self.clients[client.0].stage = Stage::Over(Ending::Served);
            self.closed(client);
            self.run();
        }
    }

    /// All whose responses have ended are done.
    pub fn close_all(&mut self) {
        for client in self.open_clients() {
            self.close(client);
        }
    }

    /// Ends the request and, before the response headers, its fetch.
    fn detach(&mut self, client: Client) {
        let stage = self.stage(client);
        self.clients[client.0].stage = Stage::Over(Ending::Left);
        if let Stage::Fetching(fetch) = stage
            && self.fetches[fetch.0].phase == FetchPhase::Sent
        {
            self.cancel(fetch);
        }
    }

    fn cancel(&mut self, fetch: FetchId) {
        self.fetches[fetch.0].phase = FetchPhase::Over;
    }

    fn closed(&mut self, client: Client) {
        self.event(client, |coalescer, stream, turn| {
            coalescer.closed(stream, turn)
        });
    }
}

/// What the origin does.
impl FakeHost {
    /// Response headers come.
    pub fn answer(&mut self, fetch: FetchId, answer: Answer) {
        let Fetch {
            client,
            key,
            purpose,
            phase,
            ..
        } = self.fetches[fetch.0];
        if phase != FetchPhase::Sent {
            return;
        }
        if answer == Answer::Kept && self.keep(fetch) {
            return;
        }
        let (until, shunned) = (self.now + self.ttl, self.now + HIT_FOR_MISS);
        let around = purpose == Purpose::Bypass;
        let verdict = match answer {
            Answer::Storable => FillVerdict::Store,
            Answer::Uncacheable => FillVerdict::HitForMiss { until: shunned },
            Answer::NoRoom => FillVerdict::NoRoom,
            Answer::Failed(status) => FillVerdict::Failed { status },
            Answer::Kept => FillVerdict::Failed { status: 503 },
            Answer::Varying => {
                let seat = self.clients[client.0].seat;
                self.seats[seat].varying.insert(key);
                let names = VaryNames::parse("accept");
                FillVerdict::Varies { names }
            }
        };
        self.event(client, |coalescer, stream, turn| {
            coalescer.fill_headers(stream, verdict, turn)
        });
        self.fetches[fetch.0].phase = FetchPhase::Body { until: None };
        self.set_stage(client, Stage::Reading(fetch));
        if answer == Answer::Storable && !around {
            if self.fetches[fetch.0].fills {
                self.fetches[fetch.0].phase = FetchPhase::Body { until: Some(until) };
            }
            self.respond(client, LeaderResponse::Filling);
            self.answer_followers(client);
        }
        self.run();
    }

    /// The store is told to serve what it has in the place of an error. False if it has nothing.
    fn keep(&mut self, fetch: FetchId) -> bool {
        let Fetch {
            client, key, fills, ..
        } = self.fetches[fetch.0];
        if !fills || !self.store.has(key) {
            return false;
        }
        self.fetches[fetch.0].phase = FetchPhase::Over;
        self.keep_unwritten(client);
        self.event(client, |coalescer, _, _| {
            coalescer.hints().set_failing(key, true)
        });
        self.run();
        true
    }

    /// The store serves what it has as it is.
    fn keep_unwritten(&mut self, client: Client) {
        let until = self.now + STALE_IF_ERROR;
        self.event(client, |coalescer, stream, turn| {
            coalescer.fill_kept(stream, until, turn)
        });
        self.set_stage(client, Stage::Draining);
        self.respond(client, LeaderResponse::Filling);
    }

    /// Whether the origin has just failed, and is not asked for what the store has.
    fn keeps_unasked(&mut self, client: Client) -> bool {
        let key = self.clients[client.0].key;
        let now = self.now;
        let seat = self.clients[client.0].seat;
        let kept = self.store.has(key);
        let coalescer = self.coalescer(seat).filter(|_| kept);
        coalescer.is_some_and(|coalescer| coalescer.hints().is_failing(key, now))
    }

    /// More of a body comes.
    pub fn progress(&mut self, fetch: FetchId) {
        let Fetch { client, phase, .. } = self.fetches[fetch.0];
        if matches!(phase, FetchPhase::Body { .. }) {
            self.event(client, |coalescer, stream, turn| {
                coalescer.fill_progress(stream, turn.now);
            });
        }
    }

    /// A body ends.
    pub fn end(&mut self, fetch: FetchId) {
        let Fetch { client, phase, .. } = self.fetches[fetch.0];
        match phase {
            FetchPhase::Body { until: Some(until) } => self.complete(fetch, until),
            FetchPhase::Body { until: None } => self.fetches[fetch.0].phase = FetchPhase::Over,
            _ => return,
        }
        self.event(client, |coalescer, stream, turn| {
            coalescer.fill_ended(stream, turn)
        });
        if self.fetches[fetch.0].phase == FetchPhase::Over {
            for reader in self.readers(fetch) {
                self.set_stage(reader, Stage::Draining);
            }
        }
        self.run();
    }

    /// The store has all of it.
    fn complete(&mut self, fetch: FetchId, until: Millis) {
        self.fetches[fetch.0].phase = FetchPhase::Over;
        self.store.end(self.fetches[fetch.0].key, until);
    }

    /// The connection to the origin breaks.
    pub fn reset(&mut self, fetch: FetchId) {
        let Fetch { client, phase, .. } = self.fetches[fetch.0];
        self.fetches[fetch.0].phase = FetchPhase::Over;
        match phase {
            FetchPhase::Over => {}
            FetchPhase::Sent => {
                self.event(client, |coalescer, stream, turn| {
                    coalescer.fill_broken(stream, turn)
                });
                self.set_stage(client, Stage::Draining);
                self.respond(client, LeaderResponse::Failed { status: 503 });
            }
            FetchPhase::Body { .. } => {
                self.event(client, |coalescer, stream, turn| {
                    coalescer.fill_broken(stream, turn)
                });
                for reader in self.readers(fetch) {
                    self.set_stage(reader, Stage::Over(Ending::Truncated));
                    self.closed(reader);
                }
            }
        }
        self.run();
    }

    fn readers(&self, fetch: FetchId) -> Vec<Client> {
        let reads = |client: &Client| self.stage(*client) == Stage::Reading(fetch);
        (0..self.clients.len()).map(Client).filter(reads).collect()
    }
}

/// The way from the filter to the origin.
impl FakeHost {
    fn enter(&mut self, client: Client, purpose: Purpose) {
        let key = self.clients[client.0].key;
        self.clients[client.0].purpose = purpose;
        if purpose == Purpose::Bypass {
            self.fetch(client, false);
            return;
        }
        match self.store.look_up(key, self.now) {
            Some(until) => {
                self.clients[client.0].stage = Stage::Draining;
                self.readable(client, until);
            }
            None if self.keeps_unasked(client) => {
                self.clients[client.0].stage = Stage::Draining;
                self.keep_unwritten(client);
            }
            None => {
                let head = self.clients[client.0].kind == Kind::Head;
                self.fetch(client, !head);
                if matches!(purpose, Purpose::Fresh | Purpose::Collapsed) {
                    self.with_request(client, Coalescer::unexpected_miss);
                }
            }
        }
    }

    fn fetch(&mut self, client: Client, fills: bool) {
        let ClientRecord {
            key, purpose, kind, ..
        } = self.clients[client.0];
        assert!(
            kind != Kind::Background || purpose == Purpose::Lead,
            "{client:?} goes to the origin for nobody"
        );
        let fetch = FetchId(self.fetches.len());
        self.fetches.push(Fetch {
            client,
            key,
            purpose,
            fills,
            phase: FetchPhase::Sent,
        });
        self.clients[client.0].stage = Stage::Fetching(fetch);
    }

    /// EDGE sees a response that whoever asks now gets too.
    fn readable(&mut self, client: Client, until: Millis) {
        let ClientRecord {
            key,
            purpose,
            stage,
            ..
        } = self.clients[client.0];
        if matches!(stage, Stage::Over(_)) {
            return;
        }
        self.event(client, |coalescer, _, _| {
            coalescer.hints().set(key, Hint::Fresh, until)
        });
        if purpose == Purpose::Lead {
            self.respond(client, LeaderResponse::Readable { until });
        }
    }

    fn respond(&mut self, client: Client, response: LeaderResponse) {
        self.event(client, |coalescer, stream, turn| {
            coalescer.response(stream, response, turn)
        });
    }

    fn set_stage(&mut self, client: Client, stage: Stage) {
        if !matches!(self.stage(client), Stage::Over(_)) {
            self.clients[client.0].stage = stage;
        }
    }
}

/// Events and effects.
impl FakeHost {
    fn with_request<R>(
        &mut self,
        client: Client,
        call: impl FnOnce(&mut Coalescer, &Request<'_>, &mut Turn<'_, FakeSharedData>) -> R,
    ) -> Option<R> {
        let ClientRecord {
            seat, key, kind, ..
        } = self.clients[client.0];
        let (target, policy) = (Rc::clone(&self.target), self.policy);
        let stream = stream_of(client);
        let may_lead = kind != Kind::Head;
        let request = Request {
            stream,
            key: FlightKey { entry: key, key },
            target: &target,
            may_lead,
            for_others: kind == Kind::Background,
            policy,
        };
        self.turn(seat, |coalescer, turn| call(coalescer, &request, turn))
    }

    fn event(
        &mut self,
        client: Client,
        call: impl FnOnce(&mut Coalescer, StreamId, &mut Turn<'_, FakeSharedData>),
    ) {
        let seat = self.clients[client.0].seat;
        // A client of a former VM is unknown to this one: its number is not in use again.
        self.turn(seat, |coalescer, turn| {
            call(coalescer, stream_of(client), turn)
        });
    }

    fn turn<R>(
        &mut self,
        seat: usize,
        event: impl FnOnce(&mut Coalescer, &mut Turn<'_, FakeSharedData>) -> R,
    ) -> Option<R> {
        let (leases, faulty) = (self.leases(), self.data.is_faulty());
        let worker = self.worker(seat)?;
        (self.leases_before, self.faulty_before) = (leases, faulty);
        let coalescer = self.seats.get_mut(seat)?.coalescer.as_mut()?;
        let mut effects = Vec::new();
        let mut turn = Turn {
            store: &mut self.data,
            now: self.now,
            effects: &mut effects,
        };
        let result = event(coalescer, &mut turn);
        for effect in effects {
            self.effects.push((worker, effect.clone()));
            self.carry_out(seat, effect);
        }
        Some(result)
    }

    fn carry_out(&mut self, seat: usize, effect: Effect) {
        match effect {
            Effect::Count(metric, amount) => *self.counters.entry(metric).or_insert(0) += amount,
            Effect::Notify { worker, message } => {
                self.queues
                    .entry(worker)
                    .or_default()
                    .push_back(Message::Flight(message).encode());
            }
            Effect::Abort { stream } => self.aborts.push_back(Client(stream.0 as usize)),
            Effect::Probe { key, .. } => self.seats[seat].probes.push_back(key),
            Effect::Resume {
                stream, release, ..
            } => {
                let client = self.unpark(stream);
                self.clients[client.0].release = Some(release);
                self.clients[client.0].stage = Stage::Resumed(release);
                if release == Release::Lead {
                    self.check_lead(client);
                }
                self.resumed.push_back(client);
            }
            // All keys here have one target, so a worker learns as its requests are released.
            Effect::Learn { .. } => {}
            Effect::Fail { stream, status, .. } => {
                let client = self.unpark(stream);
                self.clients[client.0].stage = Stage::Over(Ending::Failed(status));
            }
        }
    }

    fn unpark(&self, stream: StreamId) -> Client {
        let client = Client(stream.0 as usize);
        let stage = self.stage(client);
        assert_eq!(
            stage,
            Stage::Parked,
            "{client:?} was released, but is not parked"
        );
        client
    }

    /// Envoy goes on with resumed requests when the filter has returned.
    fn run(&mut self) {
        if !self.slow_aborts && !self.aborts.is_empty() {
            self.carry_out_aborts();
        }
        while let Some(client) = self.resumed.pop_front() {
            let Stage::Resumed(release) = self.stage(client) else {
                continue;
            };
            let purpose = match release {
                Release::Collapsed => Purpose::Collapsed,
                Release::Lead => Purpose::Lead,
                Release::HitForMiss | Release::WaitTimeout | Release::NoRoom => Purpose::Bypass,
                Release::Alone if self.is_led_for(client) => {
                    self.lead_in_background(client);
                    continue;
                }
                Release::Alone => Purpose::Alone,
                Release::Varies => {
                    self.readmit(client);
                    continue;
                }
                Release::Unneeded => {
                    self.end_unneeded(client);
                    continue;
                }
            };
            self.enter(client, purpose);
        }
    }
}

/// Variants.
impl FakeHost {
    /// A request whose URL proves to vary comes again, under the key of its variant.
    fn readmit(&mut self, client: Client) {
        let ClientRecord { seat, key, .. } = self.clients[client.0];
        self.seats[seat].varying.insert(key);
        self.clients[client.0].key = variant(key, client);
        self.clients[client.0].release = None;
        if let Kind::Conditional { led_for } = &mut self.clients[client.0].kind {
            *led_for = false;
        }
        self.admit(client);
    }
}

/// Every other request is for the other of two variants.
fn variant(key: KeyHash, client: Client) -> KeyHash {
    KeyHash(key.0 + 1_000 * (1 + client.0 as u64 % 2))
}

/// Rules that hold always.
impl FakeHost {
    /// Nobody leads while another worker's lease on the key holds, unless the board is out of use.
    fn check_lead(&self, client: Client) {
        let ClientRecord { seat, key, .. } = self.clients[client.0];
        let holder = self.leases_before.get(&key);
        let foreign = holder.filter(|holder| Some(holder.worker) != self.worker(seat));
        if let Some(holder) = foreign
            && !self.faulty_before
        {
            panic!("{client:?} leads {key:?} while {holder:?} holds a lease on it");
        }
    }

    /// What must hold between any two events.
    ///
    /// # Panics
    /// It does not hold.
    pub fn check(&self) {
        for (number, seat) in self.seats.iter().enumerate() {
            let Some(coalescer) = &seat.coalescer else {
                continue;
            };
            let of_seat = |client: &&ClientRecord| client.seat == number;
            let parked: Vec<_> = self
                .clients
                .iter()
                .filter(of_seat)
                .filter(|client| client.stage == Stage::Parked)
                .collect();
            assert_eq!(
                coalescer.parked(),
                parked.len(),
                "requests parked on worker {number}"
            );
            for client in &parked {
                let role = coalescer.role(client.key);
                assert!(role.is_some(), "{client:?} waits for nobody");
            }
            let mut keys: Vec<_> = self.clients.iter().filter(of_seat).map(|c| c.key).collect();
            keys.sort_unstable();
            keys.dedup();
            let mut flights = 0;
            for key in keys {
                let Some(role) = coalescer.role(key) else {
                    continue;
                };
                flights += 1;
                match role {
                    Role::Following { .. } => assert!(
                        parked.iter().any(|client| client.key == key),
                        "worker {number} follows {key:?} for nobody"
                    ),
                    Role::Leading(Leader {
                        phase: Phase::Committing(_) | Phase::Aborting { .. },
                        ..
                    }) => {}
                    Role::Leading(leader) => {
                        let client = Client(leader.stream.0 as usize);
                        let gone = matches!(self.stage(client), Stage::Over(_));
                        assert!(!gone, "worker {number} leads {key:?} for ever");
                    }
                }
            }
            assert_eq!(
                coalescer.flights(),
                flights,
                "flights of keys that nobody asked for"
            );
        }
    }

    /// Keys for which requests wait on a worker without anybody who leads: neither the worker itself,
    /// nor anyone with a lease.
    pub fn orphans(&self, seat: usize) -> Vec<KeyHash> {
        let Some(coalescer) = &self.seats[seat].coalescer else {
            return Vec::new();
        };
        let leases = self.leases();
        let parked = self
            .clients
            .iter()
            .filter(|client| client.seat == seat && client.stage == Stage::Parked);
        let mut keys: Vec<_> = parked.map(|client| client.key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.retain(|key| {
            matches!(coalescer.role(*key), Some(Role::Following { .. }))
                && !leases.contains_key(key)
        });
        keys
    }
}

fn stream_of(client: Client) -> StreamId {
    StreamId(u32::try_from(client.0).expect("fewer clients than that"))
}
