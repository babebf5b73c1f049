// SPDX-License-Identifier: Apache-2.0
//! Coalescing over any store: the same claims for a store in memory, and for a store that is probed, like Envoy's.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::*;
use sluice_core::coalescing::Store;
use sluice_core::coalescing::flight::FlightPolicy;
use sluice_core::coalescing::learnt::hints::Hint;
use sluice_core::coalescing::shared::board::FlightKey;
use sluice_core::coalescing::{AwaitedFill, Coalescer, Effect, Request, StoreNews, Turn};
use sluice_core::key::{CanonicalTarget, Target, canonicalize};
use sluice_core::policy::Policy;
use sluice_core::workers::message::{FlightMessage, FlightOutcome};
use sluice_core::workers::{KeyHash, Millis, OwnHeaders, StreamId, WorkerId};
use sluice_fake::{FakeSharedData, MemoryObjects, MemoryStore};
use sluice_store::Confirmations;

const KEY: KeyHash = KeyHash(7);
/// Time for which an object is fresh.
const LIFETIME: Millis = 60_000;

/// A store of one worker in a test.
trait TestStore: Store {
    /// Returns a worker's view of these objects.
    fn of(objects: &Rc<RefCell<MemoryObjects>>) -> Self;

    /// Ends a response.
    fn finish(&mut self, stream: StreamId, now: Millis);

    /// Does the store's own work up to `now`.
    fn go_on(&mut self, now: Millis);
}

impl TestStore for MemoryStore {
    fn of(objects: &Rc<RefCell<MemoryObjects>>) -> Self {
        Self::of(objects)
    }

    fn finish(&mut self, stream: StreamId, _: Millis) {
        self.objects.borrow_mut().finish(stream);
    }

    fn go_on(&mut self, _: Millis) {}
}

/// A store that makes an object readable some time after its end, and that is probed.
struct ConfirmedStore {
    objects: Rc<RefCell<MemoryObjects>>,
    confirmations: Confirmations,
    ended: VecDeque<(Millis, StreamId)>,
}

impl Store for ConfirmedStore {
    fn await_fill(&mut self, key: KeyHash, fill: AwaitedFill, now: Millis) {
        self.confirmations.await_fill(key, fill, now);
    }

    fn await_no_more(&mut self, key: KeyHash) {
        self.confirmations.await_no_more(key);
    }

    fn note_abort(&mut self, key: KeyHash, now: Millis) {
        self.confirmations.note_abort(key, now);
    }

    fn take_news(&mut self, now: Millis) -> Vec<(KeyHash, StoreNews)> {
        self.confirmations.take_news(now)
    }

    fn tick_period(&self) -> Option<Millis> {
        self.confirmations.tick_period()
    }
}

impl TestStore for ConfirmedStore {
    fn of(objects: &Rc<RefCell<MemoryObjects>>) -> Self {
        Self {
            objects: Rc::clone(objects),
            confirmations: Confirmations::default(),
            ended: VecDeque::new(),
        }
    }

    fn finish(&mut self, stream: StreamId, now: Millis) {
        self.ended.push_back((now + 15, stream));
    }

    fn go_on(&mut self, now: Millis) {
        while let Some((readable, stream)) = self.ended.front().copied()
            && readable <= now
        {
            self.ended.pop_front();
            self.objects.borrow_mut().finish(stream);
        }
        for (key, _) in self.confirmations.take_due(now) {
            let objects = self.objects.borrow();
            let looked_up = match objects.look_up(key, now) {
                Some(object) => StoreNews::Readable {
                    until: object.until,
                    small: true,
                },
                None => StoreNews::Missing,
            };
            drop(objects);
            self.confirmations.take_lookup(key, looked_up, now);
        }
    }
}

/// Progress of a client's request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Client {
    Waiting,
    Fetching,
    Served(Vec<u8>),
    Failed,
    Gone,
}

struct Worker<S> {
    coalescer: Coalescer,
    store: S,
    messages: VecDeque<FlightMessage>,
}

/// Workers over one store, and their clients.
struct World<S> {
    data: FakeSharedData,
    objects: Rc<RefCell<MemoryObjects>>,
    workers: Vec<Worker<S>>,
    clients: BTreeMap<StreamId, (usize, Client)>,
    target: Rc<CanonicalTarget>,
    policy: FlightPolicy,
    fetches: usize,
    now: Millis,
}

impl<S: TestStore> World<S> {
    fn new(workers: u16) -> Self {
        let policy = Policy::parse(br#"{"origin": {"kind": "http"}}"#).unwrap();
        let target = Target {
            scheme: Some("http"),
            authority: b"edge.test",
            path: b"/object",
        };
        let objects = Rc::default();
        let worker = |number| Worker {
            coalescer: Coalescer::new(WorkerId(number), 8),
            store: S::of(&objects),
            messages: VecDeque::new(),
        };
        Self {
            data: FakeSharedData::default(),
            workers: (0..workers).map(worker).collect(),
            clients: BTreeMap::new(),
            target: Rc::new(canonicalize(&policy, &target).unwrap()),
            policy: FlightPolicy::of(&policy),
            fetches: 0,
            now: 1,
            objects,
        }
    }

    /// Lets a worker handle an event, and carries out the effects.
    fn event<R>(
        &mut self,
        worker: usize,
        event: impl FnOnce(&mut Coalescer, &mut Turn<'_>) -> R,
    ) -> R {
        let mut effects = Vec::new();
        let mut turn = Turn {
            store: &self.data,
            now: self.now,
            effects: &mut effects,
        };
        let result = event(&mut self.workers[worker].coalescer, &mut turn);
        for effect in effects {
            self.carry_out(worker, effect);
        }
        result
    }

    fn carry_out(&mut self, worker: usize, effect: Effect) {
        let (now, store) = (self.now, &mut self.workers[worker].store);
        match effect {
            Effect::Resume { stream, .. } => self.go_on(stream),
            Effect::Fail { stream, .. } => self.set(stream, Client::Failed),
            Effect::Notify { worker, message } => {
                let worker = usize::from(worker.0);
                self.workers[worker].messages.push_back(message);
            }
            Effect::Abort { stream } => {
                self.objects.borrow_mut().abort(stream);
                self.event(worker, |coalescer, turn| {
                    coalescer.fill_broken(stream, turn)
                });
            }
            Effect::Aborted { key } => store.note_abort(key, now),
            Effect::Await { key, fill } => store.await_fill(key, fill, now),
            Effect::AwaitNoMore { key } => store.await_no_more(key),
            Effect::Confirm { .. } | Effect::Learn { .. } | Effect::Count(..) => {}
        }
    }

    /// Sends a client's request for the object to a worker.
    fn get(&mut self, worker: usize) -> StreamId {
        let stream = StreamId(u32::try_from(self.clients.len()).unwrap());
        self.clients.insert(stream, (worker, Client::Waiting));
        let (target, policy) = (Rc::clone(&self.target), self.policy);
        let request = Request {
            stream,
            key: FlightKey {
                entry: KEY,
                key: KEY,
            },
            target: &target,
            own_headers: OwnHeaders::NONE,
            may_lead: true,
            for_others: false,
            policy,
        };
        let admitted = self.event(worker, |coalescer, turn| coalescer.request(&request, turn));
        if admitted.is_some() {
            self.go_on(stream);
        }
        self.settle();
        stream
    }

    /// Sends a request to the store, and on to the origin if the store does not have the object.
    fn go_on(&mut self, stream: StreamId) {
        let (worker, now) = (self.clients[&stream].0, self.now);
        let found = self.objects.borrow().look_up(KEY, now).cloned();
        let Some(object) = found else {
            self.fetches += 1;
            self.set(stream, Client::Fetching);
            return;
        };
        self.set(stream, Client::Served(object.body));
        self.event(worker, |coalescer, turn| {
            let (until, small) = (object.until, true);
            coalescer.hints().set(KEY, Hint::Fresh, until);
            coalescer.end_flight(stream, FlightOutcome::Found { until, small }, turn);
        });
    }

    /// Begins the origin's response to a request.
    fn begin(&mut self, stream: StreamId) {
        let until = self.now + LIFETIME;
        self.objects.borrow_mut().fill(stream, KEY, until);
        self.event(self.clients[&stream].0, |coalescer, turn| {
            coalescer.fill_begins(stream, turn.now);
            coalescer.store_fills(stream, Some(until), turn.now);
        });
    }

    /// Ends the origin's response.
    fn end(&mut self, stream: StreamId) {
        let worker = self.clients[&stream].0;
        self.objects.borrow_mut().append(stream, b"body");
        self.workers[worker].store.finish(stream, self.now);
        self.event(worker, |coalescer, turn| coalescer.fill_ended(stream, turn));
        self.set(stream, Client::Served(b"body".to_vec()));
        self.event(worker, |coalescer, turn| coalescer.closed(stream, turn));
        self.settle();
    }

    /// Makes a client leave.
    fn leave(&mut self, stream: StreamId) {
        self.set(stream, Client::Gone);
        self.objects.borrow_mut().abort(stream);
        let worker = self.clients[&stream].0;
        self.event(worker, |coalescer, turn| coalescer.closed(stream, turn));
        self.settle();
    }

    fn set(&mut self, stream: StreamId, client: Client) {
        self.clients.get_mut(&stream).unwrap().1 = client;
    }

    /// Delivers messages and news of the store.
    fn settle(&mut self) {
        for worker in (0..self.workers.len()).cycle().take(4 * self.workers.len()) {
            while let Some(message) = self.workers[worker].messages.pop_front() {
                self.event(worker, |coalescer, turn| coalescer.message(message, turn));
            }
            let (now, store) = (self.now, &mut self.workers[worker].store);
            store.go_on(now);
            for (key, news) in store.take_news(now) {
                self.event(worker, |coalescer, turn| coalescer.stored(key, news, turn));
            }
        }
    }

    /// Lets time pass, with the timers running.
    fn live(&mut self, millis: Millis) {
        for _ in 0..millis / 10 {
            self.now += 10;
            for worker in 0..self.workers.len() {
                self.event(worker, |coalescer, turn| coalescer.tick(turn));
            }
            self.settle();
        }
    }

    fn fetching(&self) -> Vec<StreamId> {
        let fetching = |(stream, (_, client)): (&StreamId, &(usize, Client))| {
            (*client == Client::Fetching).then_some(*stream)
        };
        self.clients.iter().filter_map(fetching).collect()
    }

    fn served(&self) -> usize {
        let served = |(_, client): &&(usize, Client)| *client == Client::Served(b"body".to_vec());
        self.clients.values().filter(served).count()
    }
}

/// One request to the origin serves all clients of a cold object, on three workers.
fn one_fetch_serves_all_workers<S: TestStore>() {
    let mut world = World::<S>::new(3);
    let leader = world.get(0);
    for number in 0..30 {
        world.get(number % 3);
    }
    world.begin(leader);
    world.end(leader);
    world.live(100);
    assert_eq!((world.fetches, world.served()), (1, 31));
    world.get(1);
    assert_eq!((world.fetches, world.served()), (1, 32), "a hit");
}

/// If the leader leaves, in front of its response or amid it, a follower leads.
fn a_leader_that_leaves_has_an_heir<S: TestStore>(amid_body: bool) {
    let mut world = World::<S>::new(2);
    let leader = world.get(0);
    let others = [world.get(0), world.get(1)];
    if amid_body {
        world.begin(leader);
    }
    world.leave(leader);
    assert_eq!(world.fetching(), [others[0]]);
    world.begin(others[0]);
    world.end(others[0]);
    world.live(600);
    assert_eq!((world.fetches, world.served()), (2, 2));
}

/// If the store loses a response, another request leads.
fn a_lost_response_has_another_request_lead<S: TestStore>() {
    let mut world = World::<S>::new(2);
    let leader = world.get(0);
    let follower = world.get(0);
    world.begin(leader);
    world.objects.borrow_mut().abort(leader);
    world.end(leader);
    world.live(world.policy.max_wait);
    assert_eq!(world.fetching(), [follower]);
    world.begin(follower);
    world.end(follower);
    assert_eq!((world.fetches, world.served()), (2, 2));
}

/// An object that was evicted is fetched again, and one that was refreshed is not.
fn what_is_gone_is_fetched_again<S: TestStore>() {
    let mut world = World::<S>::new(1);
    let first = world.get(0);
    world.begin(first);
    world.end(first);
    world.live(5_000);
    let until = world.now + 2 * LIFETIME;
    world.objects.borrow_mut().refresh(KEY, until);
    world.live(LIFETIME);
    world.get(0);
    assert_eq!((world.fetches, world.served()), (1, 2));
    world.objects.borrow_mut().evict(KEY);
    world.workers[0].coalescer.hints().forget(KEY);
    let again = world.get(0);
    assert_eq!(world.fetching(), [again]);
}

fn claims<S: TestStore>() {
    one_fetch_serves_all_workers::<S>();
    a_leader_that_leaves_has_an_heir::<S>(false);
    a_leader_that_leaves_has_an_heir::<S>(true);
    a_lost_response_has_another_request_lead::<S>();
    what_is_gone_is_fetched_again::<S>();
}

#[test]
fn claims_hold_over_a_store_in_memory() {
    claims::<MemoryStore>();
}

#[test]
fn claims_hold_over_a_store_that_is_probed() {
    claims::<ConfirmedStore>();
}

/// An event of a random world, with the number of a worker or of a request under way.
#[derive(Clone, Copy, Debug)]
enum Step {
    Get(usize),
    Begin(usize),
    End(usize),
    Leave(usize),
    Live(Millis),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_usize).prop_map(Step::Get),
        2 => (0..8_usize).prop_map(Step::Begin),
        2 => (0..8_usize).prop_map(Step::End),
        1 => (0..64_usize).prop_map(Step::Leave),
        2 => (0..300 as Millis).prop_map(Step::Live),
    ]
}

/// Each client that stays is served, whatever happens.
fn each_client_that_stays_is_served<S: TestStore>(steps: &[Step]) {
    let mut world = World::<S>::new(3);
    for step in steps {
        let fetching = world.fetching();
        let pick = |number: usize| fetching.get(number % fetching.len().max(1)).copied();
        match *step {
            Step::Get(worker) => drop(world.get(worker)),
            Step::Begin(number) => pick(number).into_iter().for_each(|id| world.begin(id)),
            Step::End(number) => pick(number).into_iter().for_each(|id| {
                world.begin(id);
                world.end(id);
            }),
            Step::Leave(number) => {
                let waits = |client: &Client| matches!(client, Client::Waiting | Client::Fetching);
                let clients = world.clients.iter();
                let waiting = clients.filter(|(_, (_, client))| waits(client));
                let waiting: Vec<_> = waiting.map(|(stream, _)| *stream).collect();
                let leaving = waiting.get(number % waiting.len().max(1)).copied();
                leaving.into_iter().for_each(|id| world.leave(id));
            }
            Step::Live(millis) => world.live(millis),
        }
    }
    for _ in 0..40 {
        for stream in world.fetching() {
            world.begin(stream);
            world.end(stream);
        }
        world.live(500);
    }
    let gone = world
        .clients
        .values()
        .filter(|(_, client)| *client == Client::Gone);
    let gone = gone.count();
    assert_eq!(
        world.served() + gone,
        world.clients.len(),
        "{:?}",
        world.clients
    );
    for worker in &world.workers {
        assert_eq!(
            (worker.coalescer.flights(), worker.coalescer.parked()),
            (0, 0)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_client_is_lost_over_a_store_in_memory(steps in vec(step(), 0..60)) {
        each_client_that_stays_is_served::<MemoryStore>(&steps);
    }

    #[test]
    fn no_client_is_lost_over_a_store_that_is_probed(steps in vec(step(), 0..60)) {
        each_client_that_stays_is_served::<ConfirmedStore>(&steps);
    }
}
