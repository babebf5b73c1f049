// SPDX-License-Identifier: Apache-2.0
//! The host: the workers, what they share, and what is under way.

mod origin;
mod requests;
mod rules;
mod store;
mod turns;
mod variants;
mod workers;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use sluice_core::coalescing::board::Slot;
use sluice_core::coalescing::flight::FlightPolicy;
use sluice_core::coalescing::{Coalescer, Effect};
use sluice_core::key::CanonicalTarget;
use sluice_core::metrics::Metric;
use sluice_core::workers::shared_table::SharedRecord as _;
use sluice_core::workers::{FlightId, KeyHash, Millis, WorkerId};

use crate::FakeSharedData;
use crate::mirror::FakeStore;
use crate::mirror::records::{Client, ClientRecord, Fetch, FetchId, FetchPhase, Lease, Stage};

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
            let values = self.data.values();
            let slots = values
                .iter()
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

    pub(super) fn worker(&self, seat: usize) -> Option<WorkerId> {
        self.seats[seat].coalescer.as_ref().map(Coalescer::worker)
    }
}
