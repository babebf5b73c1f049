// SPDX-License-Identifier: Apache-2.0
//! A fake Envoy that is driven step by step, and is checked meanwhile.

use std::collections::BTreeMap;

use sluice_core::coalescing::shared::board::FlightKey;
use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::workers::{KeyHash, Millis};
use sluice_fake::{
    Answer, Client, ClientRecord, Ending, FakeEnvoy, FetchId, FetchPhase, Kind, Stage,
};

use super::steps::{KEYS, Step};

/// Interval at which a worker looks at the board for news that it may have missed.
const RESCAN: Millis = 500;
/// Time step of a round in which only time passes.
const ROUND: Millis = 50;

/// A purge of one key, or of all.
pub struct Purge {
    call: Client,
    key: Option<u64>,
    soft: bool,
    /// The first fetch after the purge.
    fetch: FetchId,
    /// The first request after the receipt of the purge.
    after: Option<Client>,
}

impl Purge {
    /// Sends a purge of a key, or of everything if `key` is 0.
    fn order(envoy: &mut FakeEnvoy, seat: usize, key: u64, soft: bool) -> Self {
        let key = Some(key).filter(|key| *key > 0);
        let what = key.map_or(r#""everything": true"#.to_owned(), |key| {
            format!(r#""url": "http://edge.test/{key}""#)
        });
        let fetch = FetchId(envoy.fetches.len());
        let call = envoy.purge(seat, &format!(r#"{{{what}, "soft": {soft}}}"#));
        Self {
            call,
            key,
            soft,
            fetch,
            after: None,
        }
    }

    /// Notes whether the receipt has arrived.
    fn watch(&mut self, envoy: &FakeEnvoy) {
        let acknowledged = envoy.clients[self.call.0].status() == 200;
        if acknowledged && self.after.is_none() {
            self.after = Some(Client(envoy.clients.len()));
        }
    }

    /// Checks that no request after the receipt got a response which was fetched before the purge. After a soft purge
    /// such a response is allowed if the origin was asked after the purge.
    pub fn check(&self, envoy: &FakeEnvoy) {
        let Some(after) = self.after else {
            return;
        };
        let of_key = |key: u64| self.key.is_none_or(|purged| purged == key);
        let asked = |key: u64| {
            let mut fetches = envoy.fetches.iter().skip(self.fetch.0);
            fetches.any(|fetch| fetch.key == key)
        };
        for (number, client) in envoy.clients.iter().enumerate().skip(after.0) {
            // The target of the filter's own request may be from before the purge.
            let concerned = of_key(client.key) && !client.kind.is_own();
            let Some(fetch) = client.brought_by().filter(|_| concerned) else {
                continue;
            };
            let newer = fetch >= self.fetch || (self.soft && asked(client.key));
            let purge = self.fetch;
            assert!(
                newer,
                "client {number} got {fetch:?} after a purge before {purge:?}: {client:?}"
            );
        }
    }
}

/// A host, and the state that is checked after each step.
pub struct World {
    pub host: FakeEnvoy,
    /// Time since which requests wait on a worker for a key without a leader.
    pub orphans: BTreeMap<(usize, KeyHash), Millis>,
    /// Whether the board has failed at some time.
    pub faulty: bool,
    /// The origin's response in the end.
    pub answer: Answer,
    /// Clients that left with their 304 while they led.
    pub left: Vec<Client>,
    /// Whether messages and turns take less time than a purge waits for its acknowledgement, and a lease for its
    /// renewal.
    pub prompt: bool,
    /// All purges so far.
    pub purges: Vec<Purge>,
}

impl World {
    pub fn new(document: &str, workers: usize) -> Self {
        Self {
            host: FakeEnvoy::new(document, workers),
            orphans: BTreeMap::new(),
            faulty: false,
            answer: Answer::Storable,
            left: Vec::new(),
            prompt: false,
            purges: Vec::new(),
        }
    }

    pub fn run(&mut self, steps: &[Step]) {
        for step in steps {
            let faulty = self.host.data.is_faulty();
            self.step(*step);
            if faulty {
                // A look at the board may have failed, so that the next one is due after another interval.
                self.orphans.clear();
            }
            self.faulty |= self.host.data.is_faulty();
            self.host.check();
            self.watch_orphans();
            for purge in &mut self.purges {
                purge.watch(&self.host);
            }
        }
    }

    /// Runs one step, after which no timer is late.
    pub fn run_in_time(&mut self, step: Step) {
        self.run(&[step]);
        if matches!(step, Step::Advance { .. }) {
            self.tick_all();
        }
    }

    fn step(&mut self, step: Step) {
        let seat = |number: u8| usize::from(number) % self.host.workers();
        let key = |number: u8| u64::from(number) % KEYS;
        let fetch = |number: u8| pick(&self.host.open_fetches(), number);
        match step {
            Step::Get {
                worker,
                key: number,
            } => {
                self.host.get(seat(worker), key(number));
            }
            Step::Head {
                worker,
                key: number,
            } => {
                self.host.head(seat(worker), key(number));
            }
            Step::Range {
                worker,
                key: number,
            } => {
                self.host.range(seat(worker), key(number));
            }
            Step::Conditional {
                worker,
                key: number,
            } => {
                self.host.conditional(seat(worker), key(number));
            }
            Step::LeaveWith304 { client } => {
                let mut served = self.host.open_clients();
                served.retain(|client| self.host.has_its_304(*client));
                let client = pick(&served, client);
                client.into_iter().for_each(|client| self.leave(client));
            }
            Step::Answer {
                fetch: number,
                answer,
            } => {
                fetch(number)
                    .into_iter()
                    .for_each(|fetch| self.host.answer(fetch, answer));
            }
            Step::Progress { fetch: number } => {
                fetch(number)
                    .into_iter()
                    .for_each(|fetch| self.host.progress(fetch));
            }
            Step::End { fetch: number } => {
                fetch(number)
                    .into_iter()
                    .for_each(|fetch| self.host.end(fetch));
            }
            Step::Reset { fetch: number } => {
                fetch(number)
                    .into_iter()
                    .for_each(|fetch| self.host.reset(fetch));
            }
            Step::Abort { client } => {
                let mut clients = self.host.open_clients();
                clients.retain(|client| !self.host.clients[client.0].kind.is_own());
                let client = pick(&clients, client);
                client
                    .into_iter()
                    .for_each(|client| self.host.abort(client));
            }
            Step::Close { client } => {
                let drains = |client: &Client| self.host.stage(*client) == Stage::Draining;
                let draining: Vec<_> = self
                    .host
                    .open_clients()
                    .into_iter()
                    .filter(drains)
                    .collect();
                let client = pick(&draining, client);
                client
                    .into_iter()
                    .for_each(|client| self.host.close(client));
            }
            Step::Deliver { worker } => self.host.deliver(seat(worker)),
            Step::Lose { worker } => self.host.lose(seat(worker)),
            Step::Commit { key: number } => {
                let key = key(number);
                self.host.commit(key);
            }
            Step::DropCommits { key: number } => {
                let key = key(number);
                self.host.drop_commits(key);
            }
            Step::Evict { key: number } => {
                let key = key(number);
                self.host.evict(key);
            }
            Step::AnswerLookup { worker } => self.host.answer_lookup(seat(worker)),
            Step::LoseLookup { worker } => self.host.lose_lookup(seat(worker)),
            Step::Tick { worker } => self.tick(seat(worker)),
            Step::TickAll => self.tick_all(),
            Step::Rescan { worker } => self.host.update_policy(seat(worker)),
            Step::SlowAborts { slow } => self.host.slow_aborts = slow,
            Step::CarryOutAborts => self.host.carry_out_aborts(),
            Step::LoseAborts => self.host.lose_aborts(),
            Step::HoldCalls { hold } => self.host.hold_calls = hold,
            Step::HoldTurns { hold } => self.host.hold_turns = hold,
            Step::TakeTurns => self.host.take_turns(),
            Step::SendCalls { worker } => self.host.send_calls(seat(worker)),
            Step::Advance { millis } => {
                if self.prompt {
                    self.host.take_turns();
                    self.host.deliver_all();
                    self.host.take_turns();
                }
                self.host.advance(Millis::from(millis));
            }
            Step::Kill { worker } => self.host.kill(seat(worker)),
            Step::Revive { worker } => self.host.revive(seat(worker)),
            Step::LoseWrites { count } => self.host.data.lose_next(u32::from(count)),
            Step::Purge {
                worker,
                key: number,
                soft,
            } => {
                let (seat, key) = (seat(worker), key(number));
                let purge = Purge::order(&mut self.host, seat, key, soft);
                self.purges.push(purge);
            }
            Step::Fill { full } => self.host.full = full,
            Step::FailCalls { count } => self.host.data.fail_next(u32::from(count)),
        }
    }

    fn leave(&mut self, client: Client) {
        self.left.push(client);
        // A call of the filter replaces the client.
        let fail = std::mem::take(&mut self.host.calls_fail);
        self.host.abort(client);
        self.host.calls_fail = fail;
    }

    fn tick_all(&mut self) {
        for seat in 0..self.host.workers() {
            self.tick(seat);
        }
    }

    /// Fires the timer of a worker. The timer must find every key that has had no leader for a while.
    fn tick(&mut self, seat: usize) {
        let faulty = self.host.data.is_faulty();
        self.host.tick(seat);
        for key in self.host.orphans(seat) {
            let Some(since) = self.orphans.get_mut(&(seat, key)) else {
                continue;
            };
            if faulty {
                *since = self.host.now();
            }
            let lost = *since + RESCAN <= self.host.now();
            assert!(
                !lost,
                "worker {seat} waits for {key:?}, which has had no leader since {since}"
            );
        }
    }

    fn watch_orphans(&mut self) {
        let mut current = BTreeMap::new();
        for seat in 0..self.host.workers() {
            for key in self.host.orphans(seat) {
                let since = self
                    .orphans
                    .get(&(seat, key))
                    .copied()
                    .unwrap_or(self.host.now());
                current.insert((seat, key), since);
            }
        }
        self.orphans = current;
    }

    /// Runs one round in which everything that is due happens. A key may have a leader for a part of the round only,
    /// so the watch runs after each part.
    pub fn settle(&mut self) {
        self.watch_orphans();
        self.host.deliver_all();
        self.watch_orphans();
        self.host.carry_out_aborts();
        (self.host.hold_calls, self.host.hold_turns) = (false, false);
        self.host.take_turns();
        for seat in 0..self.host.workers() {
            self.host.send_calls(seat);
        }
        self.watch_orphans();
        for key in 0..KEYS {
            self.host.commit(key);
        }
        for seat in 0..self.host.workers() {
            for _ in 0..self.host.lookups(seat) {
                self.host.answer_lookup(seat);
                self.watch_orphans();
            }
        }
        self.host.close_all();
        self.watch_orphans();
        self.host.advance(ROUND);
        self.tick_all();
        self.host.check();
        self.watch_orphans();
    }

    /// Lets the origin answer everything, slowly, until all requests are over.
    pub fn finish(&mut self, bound: Millis) {
        let end = self.host.now() + bound;
        if self.host.hold_calls || self.host.hold_turns {
            // Calls that are held may begin fills for which no client waits.
            self.settle();
        }
        while self.host.now() < end && !self.is_over() {
            for fetch in self.host.open_fetches() {
                match self.host.fetches[fetch.0].phase {
                    FetchPhase::Sent => self.host.answer(fetch, self.answer),
                    _ => self.host.end(fetch),
                }
            }
            self.settle();
        }
        assert_eq!(self.host.open_clients(), [], "requests that never ended");
        for seat in 0..self.host.workers() {
            if let Some(coalescer) = self.host.coalescer(seat) {
                let left = (coalescer.parked(), coalescer.flights());
                assert_eq!(left, (0, 0), "worker {seat} leaks");
                assert_eq!(coalescer.resting(), 0, "worker {seat} leaks");
                assert_eq!(
                    coalescer.tick_period(),
                    None,
                    "worker {seat} ticks for nothing"
                );
            }
        }
        // If another key of the same entry is led, the flight of a slow worker may be left until its lease ends.
        if !self.faulty && self.purges.is_empty() {
            for (FlightKey { key, .. }, id, expires) in self.host.board() {
                assert!(
                    expires <= self.host.now() || !self.host.lives(id.worker),
                    "{key:?} is still on the board as {id:?}"
                );
            }
        }
        self.host.advance(3_000);
        assert_eq!(self.host.leases(), BTreeMap::new(), "leases that never end");
    }

    /// Checks that all clients have been served, and that none has gone around the others.
    pub fn assert_all_shared(&self) {
        for client in self.host.clients.iter().filter(|client| is_needed(client)) {
            assert_eq!(client.stage, Stage::Over(Ending::Served), "{client:?}");
            let shared = matches!(
                client.release,
                None | Some(
                    NextStep::Send(StoreRequest::Collapsed)
                        | NextStep::Send(StoreRequest::Fresh)
                        | NextStep::Send(StoreRequest::Lead)
                )
            );
            assert!(shared, "{client:?}");
        }
    }

    fn is_over(&mut self) -> bool {
        let idle = (0..self.host.workers()).all(|seat| {
            self.host
                .coalescer(seat)
                .is_none_or(|coalescer| coalescer.flights() + coalescer.resting() == 0)
        });
        idle && self.host.open_clients().is_empty()
    }
}

/// Whether the request is a client's, or a background fill that a request needs.
pub fn is_needed(client: &ClientRecord) -> bool {
    let leads = client.kind == Kind::Background && client.stage != Stage::Over(Ending::Unneeded);
    leads || !client.kind.is_own()
}

fn pick<T: Copy>(among: &[T], number: u8) -> Option<T> {
    among.get(usize::from(number) % among.len().max(1)).copied()
}
