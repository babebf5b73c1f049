// SPDX-License-Identifier: Apache-2.0
//! Coalescing holds its rules in whatever order things happen.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngAlgorithm;
use sluice_core::coalescing::Onward;
use sluice_core::workers::{KeyHash, Millis};
use sluice_fake::{Answer, Client, ClientRecord, Ending, FakeEnvoy, FetchPhase, Kind, Stage};
use support::document;

/// Keys that requests are for; few, so that they meet.
const KEYS: u64 = 3;
/// How often a worker looks at the board for news that it may have missed.
const RESCAN: Millis = 500;
/// Round of the clock when nothing more is to happen but time.
const ROUND: Millis = 50;

/// Something that happens. Small numbers stand for workers and keys, and for requests by their position
/// among those that are under way.
#[derive(Clone, Copy, Debug)]
enum Step {
    Get { worker: u8, key: u8 },
    Head { worker: u8, key: u8 },
    Range { worker: u8, key: u8 },
    Conditional { worker: u8, key: u8 },
    LeaveWith304 { client: u8 },
    Answer { fetch: u8, answer: Answer },
    Progress { fetch: u8 },
    End { fetch: u8 },
    Reset { fetch: u8 },
    Abort { client: u8 },
    Close { client: u8 },
    Deliver { worker: u8 },
    Lose { worker: u8 },
    Commit { key: u8 },
    DropCommits { key: u8 },
    Evict { key: u8 },
    AnswerProbe { worker: u8 },
    LoseProbe { worker: u8 },
    Tick { worker: u8 },
    TickAll,
    Rescan { worker: u8 },
    SlowAborts { slow: bool },
    CarryOutAborts,
    LoseAborts,
    HoldCalls { hold: bool },
    SendCalls { worker: u8 },
    Advance { millis: u16 },
    Kill { worker: u8 },
    Revive { worker: u8 },
    LoseWrites { count: u8 },
    FailCalls { count: u8 },
}

/// What happens where nothing goes wrong.
fn ordinary() -> impl Strategy<Value = Step> {
    let small = || 0..8_u8;
    prop_oneof![
        6 => (small(), small()).prop_map(|(worker, key)| Step::Get { worker, key }),
        2 => (small(), small()).prop_map(|(worker, key)| Step::Conditional { worker, key }),
        3 => small().prop_map(|fetch| Step::Answer { fetch, answer: Answer::Storable }),
        1 => small().prop_map(|fetch| Step::Progress { fetch }),
        3 => small().prop_map(|fetch| Step::End { fetch }),
        2 => small().prop_map(|client| Step::Close { client }),
        3 => small().prop_map(|worker| Step::Deliver { worker }),
        2 => small().prop_map(|key| Step::Commit { key }),
        3 => small().prop_map(|worker| Step::AnswerProbe { worker }),
        2 => small().prop_map(|worker| Step::Tick { worker }),
        1 => small().prop_map(|worker| Step::Rescan { worker }),
        3 => Just(Step::TickAll),
        4 => (0..60_u16).prop_map(|millis| Step::Advance { millis }),
        1 => (0..30_u8).prop_map(|count| Step::LoseWrites { count }),
    ]
}

/// A client leaves whose whole answer has come before its fill.
fn leaving() -> impl Strategy<Value = Step> {
    (0..8_u8).prop_map(|client| Step::LeaveWith304 { client })
}

/// What happens in the world.
fn anything() -> impl Strategy<Value = Step> {
    let small = || 0..8_u8;
    let unwanted = prop_oneof![
        Just(Answer::Uncacheable),
        Just(Answer::Failed(503)),
        Just(Answer::Unchanged)
    ];
    prop_oneof![
        24 => ordinary(),
        1 => (small(), small()).prop_map(|(worker, key)| Step::Head { worker, key }),
        1 => (small(), small()).prop_map(|(worker, key)| Step::Range { worker, key }),
        1 => any::<bool>().prop_map(|hold| Step::HoldCalls { hold }),
        1 => small().prop_map(|worker| Step::SendCalls { worker }),
        2 => (small(), unwanted).prop_map(|(fetch, answer)| Step::Answer { fetch, answer }),
        1 => leaving(),
        1 => small().prop_map(|fetch| Step::Reset { fetch }),
        4 => (0..32_u8).prop_map(|client| Step::Abort { client }),
        2 => small().prop_map(|worker| Step::Lose { worker }),
        1 => small().prop_map(|worker| Step::LoseProbe { worker }),
        1 => any::<bool>().prop_map(|slow| Step::SlowAborts { slow }),
        1 => Just(Step::CarryOutAborts),
        1 => Just(Step::LoseAborts),
        1 => small().prop_map(|key| Step::DropCommits { key }),
        1 => small().prop_map(|key| Step::Evict { key }),
        1 => small().prop_map(|worker| Step::Kill { worker }),
        1 => small().prop_map(|worker| Step::Revive { worker }),
        2 => (0..7_000_u16).prop_map(|millis| Step::Advance { millis }),
    ]
}

/// The same, with a board that is out of use now and then.
fn anything_and_board_faults() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => anything(),
        1 => (0..80_u8).prop_map(|count| Step::LoseWrites { count }),
        1 => (0..4_u8).prop_map(|count| Step::FailCalls { count }),
    ]
}

/// Policies, with bounds that are reached now and then.
fn policy() -> impl Strategy<Value = String> {
    let waiters = prop_oneof![1 => 1..4_usize, 3 => Just(10_000)];
    let keys = prop_oneof![1 => 1..3_usize, 3 => Just(8_192)];
    (waiters, keys).prop_map(|(waiters, keys)| {
        format!(
            r#"{{"origin": {{"kind": "http"}}, "purge": {{"warm": false}}, "limits":
            {{"hints": 64, "varying_urls": 64, "waiters_per_key": {waiters}, "keys_in_flight": {keys}}}}}"#
        )
    })
}

/// For how many seconds responses are fresh: for good, or so that they expire between steps and while they come.
fn ttl() -> impl Strategy<Value = u64> {
    prop_oneof![Just(3_600), 1..3_u64]
}

/// A host, and what is watched from step to step.
struct World {
    host: FakeEnvoy,
    /// Since when requests wait on a worker for a key that nobody leads.
    orphans: BTreeMap<(usize, KeyHash), Millis>,
    /// The board failed at some time.
    faulty: bool,
    /// What the origin answers in the end.
    answer: Answer,
    /// Who has left with its 304 while it led.
    left: Vec<Client>,
}

impl World {
    fn new(document: &str, workers: usize) -> Self {
        Self {
            host: FakeEnvoy::new(document, workers),
            orphans: BTreeMap::new(),
            faulty: false,
            answer: Answer::Storable,
            left: Vec::new(),
        }
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            let faulty = self.host.data.is_faulty();
            self.step(*step);
            if faulty {
                // A look at the board may have been in vain; the next is due after as long again.
                self.orphans.clear();
            }
            self.faulty |= self.host.data.is_faulty();
            self.host.check();
            self.watch_orphans();
        }
    }

    /// The same for one step, after which no timer is late.
    fn run_in_time(&mut self, step: Step) {
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
            Step::AnswerProbe { worker } => self.host.answer_probe(seat(worker)),
            Step::LoseProbe { worker } => self.host.lose_probe(seat(worker)),
            Step::Tick { worker } => self.tick(seat(worker)),
            Step::TickAll => self.tick_all(),
            Step::Rescan { worker } => self.host.update_policy(seat(worker)),
            Step::SlowAborts { slow } => self.host.slow_aborts = slow,
            Step::CarryOutAborts => self.host.carry_out_aborts(),
            Step::LoseAborts => self.host.lose_aborts(),
            Step::HoldCalls { hold } => self.host.hold_calls = hold,
            Step::SendCalls { worker } => self.host.send_calls(seat(worker)),
            Step::Advance { millis } => self.host.advance(Millis::from(millis)),
            Step::Kill { worker } => self.host.kill(seat(worker)),
            Step::Revive { worker } => self.host.revive(seat(worker)),
            Step::LoseWrites { count } => self.host.data.lose_next(u32::from(count)),
            Step::FailCalls { count } => self.host.data.fail_next(u32::from(count)),
        }
    }

    fn leave(&mut self, client: Client) {
        self.left.push(client);
        // Whoever takes its place is a call.
        let fail = std::mem::take(&mut self.host.calls_fail);
        self.host.abort(client);
        self.host.calls_fail = fail;
    }

    fn tick_all(&mut self) {
        for seat in 0..self.host.workers() {
            self.tick(seat);
        }
    }

    /// The timer of a worker. It must find every key that has had no leader for a while.
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
                "worker {seat} waits for {key:?}, which nobody has led since {since}"
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

    /// One round in which everything happens that is due by itself.
    fn settle(&mut self) {
        self.host.deliver_all();
        self.host.carry_out_aborts();
        self.host.hold_calls = false;
        for seat in 0..self.host.workers() {
            self.host.send_calls(seat);
        }
        for key in 0..KEYS {
            self.host.commit(key);
        }
        for seat in 0..self.host.workers() {
            for _ in 0..self.host.probes(seat) {
                self.host.answer_probe(seat);
            }
        }
        self.host.close_all();
        self.host.advance(ROUND);
        self.tick_all();
        self.host.check();
        self.watch_orphans();
    }

    /// The origin answers everything, slowly, until all is over.
    fn finish(&mut self, bound: Millis) {
        let end = self.host.now() + bound;
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
                assert_eq!(
                    (coalescer.parked(), coalescer.flights()),
                    (0, 0),
                    "worker {seat} leaks"
                );
                assert_eq!(
                    coalescer.tick_period(),
                    None,
                    "worker {seat} ticks for nothing"
                );
            }
        }
        if !self.faulty {
            for (key, id, _) in self.host.board() {
                assert!(
                    !self.host.lives(id.worker),
                    "{key:?} is still on the board as {id:?}"
                );
            }
        }
        self.host.advance(3_000);
        assert_eq!(self.host.leases(), BTreeMap::new(), "leases that never end");
    }

    /// All have been served, and nobody went around the others.
    fn assert_all_shared(&self) {
        for client in self.host.clients.iter().filter(|client| is_needed(client)) {
            assert_eq!(client.stage, Stage::Over(Ending::Served), "{client:?}");
            let shared = matches!(
                client.release,
                None | Some(Onward::Collapsed | Onward::Lead)
            );
            assert!(shared, "{client:?}");
        }
    }

    fn is_over(&mut self) -> bool {
        let idle = (0..self.host.workers()).all(|seat| {
            self.host
                .coalescer(seat)
                .is_none_or(|coalescer| coalescer.flights() == 0)
        });
        idle && self.host.open_clients().is_empty()
    }
}

/// Whether it is a client's request, or a fill in the background that somebody needs.
fn is_needed(client: &ClientRecord) -> bool {
    let leads = client.kind == Kind::Background && client.stage != Stage::Over(Ending::Unneeded);
    leads || !client.kind.is_own()
}

fn pick<T: Copy>(among: &[T], number: u8) -> Option<T> {
    among.get(usize::from(number) % among.len().max(1)).copied()
}

/// Everyone gets an answer, whatever went wrong before the origin began to answer.
fn all_is_released(policy: &str, workers: usize, ttl: u64, steps: &[Step]) {
    let mut world = World::new(policy, workers);
    world.host.ttl = ttl;
    world.run(steps);
    // The lease of a dead worker, and the rescan that finds it; max_wait for a store that forgot.
    world.finish(20_000);
}

/// Nobody waits for an origin that never answers again for much longer than max_wait.
fn nobody_waits_for_a_silent_origin(policy: &str, workers: usize, steps: &[Step]) {
    let mut world = World::new(policy, workers);
    world.run(steps);
    // What a lost leader's heirs wait for, a dead worker's lease, and their own max_wait.
    let policy = world.host.policy;
    let end = world.host.now() + policy.lease + 2 * policy.max_wait + 2_000;
    while world.host.now() < end {
        world.settle();
    }
    assert_eq!(
        world.host.parked(),
        0,
        "requests that wait for a silent origin"
    );
    world.finish(20_000);
}

/// Where nothing goes wrong, each key is fetched once, and all get the response.
fn each_key_is_fetched_once(workers: usize, steps: &[Step]) {
    // A lease that would run out often if nobody renewed it.
    let mut world = World::new(&document(r#""coalesce": {"lease": "300ms"}"#), workers);
    for step in steps {
        world.run_in_time(*step);
        for seat in 0..workers {
            let told = world.host.messages(seat) == 0;
            assert!(
                !told || world.host.orphans(seat).is_empty(),
                "worker {seat} was not told"
            );
        }
    }
    world.finish(20_000);
    for key in 0..KEYS {
        let asked = world
            .host
            .clients
            .iter()
            .filter(|client| client.key == key)
            .count();
        let fetched = world
            .host
            .fetches
            .iter()
            .filter(|fetch| fetch.key == key)
            .count();
        assert_eq!(
            fetched,
            asked.min(1),
            "fetches of {key:?} for {asked} requests"
        );
    }
    world.assert_all_shared();
}

/// Where a leader leaves with its 304 and nothing goes wrong, its key is fetched once more, and all others get it.
fn a_304_costs_one_more_fetch(workers: usize, steps: &[Step]) {
    let mut world = World::new(&document(""), workers);
    // So that who asks for changes leads.
    world.host.calls_fail = true;
    for step in steps {
        world.run_in_time(*step);
    }
    world.finish(20_000);
    for key in 0..KEYS {
        let of_key = |client: &Client| world.host.clients[client.0].key == key;
        let left = world.left.iter().filter(|client| of_key(client)).count();
        let fetches = world.host.fetches.iter();
        let fetched = fetches.filter(|fetch| fetch.key == key).count();
        assert!(
            fetched <= 1 + left,
            "{fetched} fetches of {key:?}, {left} have left"
        );
        assert_eq!(world.host.has(key), fetched > 0, "{key:?}");
    }
    let clients = world.host.clients.iter().enumerate();
    for (number, client) in clients.filter(|(_, client)| is_needed(client)) {
        let left = world.left.contains(&Client(number));
        let ending = if left { Ending::Left } else { Ending::Served };
        assert_eq!(client.stage, Stage::Over(ending), "{client:?}");
    }
}

/// Where the origin fails and nothing else goes wrong, all get what is stored, and each worker asks once at most.
fn an_error_is_met_once(workers: usize, steps: &[Step]) {
    let patient = document(r#""cache": {"retry_interval": "1h"}"#);
    let mut world = World::new(&patient, workers);
    world.host.ttl = 1;
    for key in 0..KEYS {
        world.host.get(0, key);
    }
    world.finish(20_000);
    let before = world.host.fetches.len();
    world.answer = Answer::Failed(503);
    for step in steps {
        let step = match *step {
            Step::Answer { fetch, .. } => Step::Answer {
                fetch,
                answer: Answer::Failed(503),
            },
            Step::LoseWrites { .. } => Step::TickAll,
            step => step,
        };
        world.run_in_time(step);
    }
    world.finish(20_000);
    for key in 0..KEYS {
        let fetches = world.host.fetches.iter().skip(before);
        let fetches = fetches.filter(|fetch| fetch.key == key).count();
        assert!(fetches <= workers, "{fetches} requests for {key:?}");
    }
    world.assert_all_shared();
}

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig {
        cases: count,
        failure_persistence: None,
        // The default takes half of the time in a debug build.
        rng_algorithm: RngAlgorithm::XorShift,
        ..ProptestConfig::default()
    }
}

#[test]
fn who_waits_for_a_response_that_is_lost_at_once_waits_for_who_fetches_it_again() {
    let get = |worker| Step::Get { worker, key: 1 };
    let answer = Step::Answer {
        fetch: 0,
        answer: Answer::Storable,
    };
    let stored = [
        Step::End { fetch: 0 },
        Step::Commit { key: 1 },
        Step::AnswerProbe { worker: 0 },
    ];
    let lost = [Step::Evict { key: 1 }, get(2)];
    let mut world = World::new(&document(""), 3);
    world.run(&[get(0), answer, get(1)]);
    world.run(&[Step::Deliver { worker: 0 }]);
    world.run(&stored);
    world.run(&lost);
    world.finish(20_000);
    let follower = &world.host.clients[1];
    assert_eq!(follower.release, Some(Onward::Collapsed), "{follower:?}");
    assert_eq!(world.host.fetches.len(), 2);
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn all_is_released_once_the_origin_answers(
        policy in policy(),
        workers in 1..=4_usize,
        ttl in ttl(),
        steps in vec(anything(), 0..80),
    ) {
        all_is_released(&policy, workers, ttl, &steps);
    }

    #[test]
    fn all_is_released_though_the_board_fails(
        policy in policy(),
        workers in 2..=4_usize,
        ttl in ttl(),
        steps in vec(anything_and_board_faults(), 0..80),
    ) {
        all_is_released(&policy, workers, ttl, &steps);
    }

    #[test]
    fn each_key_is_fetched_once_where_nothing_goes_wrong(
        workers in 1..=4_usize,
        steps in vec(ordinary(), 0..80),
    ) {
        each_key_is_fetched_once(workers, &steps);
    }

    #[test]
    fn a_leader_that_leaves_with_its_304_costs_one_more_fetch(
        workers in 1..=4_usize,
        steps in vec(prop_oneof![8 => ordinary(), 2 => leaving()], 0..80),
    ) {
        a_304_costs_one_more_fetch(workers, &steps);
    }

    #[test]
    fn all_get_what_is_stored_where_the_origin_fails(
        workers in 1..=4_usize,
        steps in vec(ordinary(), 0..80),
    ) {
        an_error_is_met_once(workers, &steps);
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn nobody_waits_long_for_an_origin_that_fell_silent(
        policy in policy(),
        workers in 1..=4_usize,
        steps in vec(anything(), 0..60),
    ) {
        nobody_waits_for_a_silent_origin(&policy, workers, &steps);
    }
}

proptest! {
    #![proptest_config(cases(10_000))]

    #[test]
    #[ignore = "takes minutes"]
    fn soak(
        policy in policy(),
        workers in 1..=4_usize,
        ttl in ttl(),
        steps in vec(anything(), 0..200),
        faulty_steps in vec(anything_and_board_faults(), 0..120),
        ordinary_steps in vec(ordinary(), 0..200),
    ) {
        all_is_released(&policy, workers, ttl, &steps);
        nobody_waits_for_a_silent_origin(&policy, workers, &steps);
        all_is_released(&policy, workers, ttl, &faulty_steps);
        each_key_is_fetched_once(workers, &ordinary_steps);
    }
}
