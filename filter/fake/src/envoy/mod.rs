// SPDX-License-Identifier: Apache-2.0
//! The fake Envoy: its workers, their shared data, its cache, and the requests under way.

mod callbacks;
mod calls;
mod chain;
mod control;
mod origin;
mod peers;
mod purges;
mod requests;
mod responses;
mod rules;
mod slicer;
mod tasks;
mod workers;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

use sluice_core::coalescing::Coalescer;
use sluice_core::coalescing::flight::FlightPolicy;
use sluice_core::coalescing::shared::board::Slot;
use sluice_core::metrics::Metric;
use sluice_core::sites::Sites;
use sluice_core::workers::message::Message;
use sluice_core::workers::shared_table::SharedRecord as _;
use sluice_core::workers::{FlightId, KeyHash, Millis, WorkerId};
use sluice_roles::worker::Worker;
use sluice_store::ENTRY_HEADER;

use crate::exchange::{Exchange, HOST, Side};
use crate::process::Process;
use crate::records::{Client, ClientRecord, Fetch, FetchId, FetchPhase, Lease, Stage};
use crate::vm::Vm;
use crate::{FakeCache, FakeSharedData};

/// Whole fake Envoy.
#[derive(Debug)]
pub struct FakeEnvoy {
    /// Shared data of the workers.
    pub data: Rc<FakeSharedData>,
    /// Seconds for which a storable response is fresh.
    pub ttl: u64,
    /// Further directives that the origin sends with its objects, each with a comma in front.
    pub directives: &'static str,
    /// Whether the disk of the cache is full.
    pub full: bool,
    /// Number of the connection of all further requests, if they have one.
    pub connection: Option<u64>,
    /// Whether resets in the name of another stream wait for [`FakeEnvoy::carry_out_aborts`].
    pub slow_aborts: bool,
    /// Whether calls for background fills fail, so that none of them leads.
    pub calls_fail: bool,
    /// Whether the filter's calls, except lookups, wait for [`FakeEnvoy::send_calls`].
    pub hold_calls: bool,
    /// Whether root contexts get their turns only by [`FakeEnvoy::take_turns`].
    pub hold_turns: bool,
    /// Whether the store looks requests up only by [`FakeEnvoy::look_up`].
    pub hold_lookups: bool,
    /// Whether the cache handles requests despite their `If-Range`, unlike any Envoy.
    pub ignores_if_range: bool,
    /// The address of later clients, with a port.
    pub address: String,
    /// Part of the policy that flights use.
    pub policy: FlightPolicy,
    /// All requests so far.
    pub clients: Vec<ClientRecord>,
    /// All requests to the origin so far.
    pub fetches: Vec<Fetch>,
    cache: FakeCache,
    process: Rc<Process>,
    /// Policy document.
    document: Rc<[u8]>,
    vms: Vec<Option<Vm>>,
    exchanges: Vec<Exchange>,
    contexts: HashMap<(usize, u32), (Client, Side)>,
    /// Resets that wait.
    aborts: VecDeque<(usize, u32)>,
    /// Root contexts that wait for their turn.
    turns: VecDeque<(usize, u32)>,
    /// Requests that wait for the store.
    unsought: VecDeque<Client>,
    /// The last worker at each seat whose VM has died, until it has a successor.
    lost: BTreeMap<usize, WorkerId>,
    /// Hashes of the keys of all requests.
    keys: BTreeSet<KeyHash>,
    /// Result of [`FakeEnvoy::board`] after this number of writes.
    board: RefCell<(u32, Rc<Vec<Lease>>)>,
}

impl FakeEnvoy {
    /// Creates a process with this number of workers, under a policy document in JSON.
    pub fn new(document: &str, workers: usize) -> Self {
        Self::in_environment(document, workers, &[])
    }

    /// Creates a process with these variables in the environment of its VMs.
    pub fn in_environment(document: &str, workers: usize, variables: &[(&str, &str)]) -> Self {
        let sites = Sites::parse(document.as_bytes()).expect("sites");
        let process = Rc::new(Process::new());
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        *process.environment.borrow_mut() = variables.iter().map(owned).collect();
        let mut envoy = Self {
            data: Rc::clone(&process.data),
            ttl: 3_600,
            directives: "",
            full: false,
            connection: None,
            slow_aborts: false,
            calls_fail: false,
            hold_calls: false,
            hold_turns: false,
            hold_lookups: false,
            ignores_if_range: false,
            address: "192.0.2.7:50000".to_owned(),
            policy: FlightPolicy::of(&sites.sites[0].policy),
            clients: Vec::new(),
            fetches: Vec::new(),
            cache: FakeCache::default(),
            process,
            document: document.as_bytes().into(),
            vms: Vec::new(),
            exchanges: Vec::new(),
            contexts: HashMap::new(),
            lost: BTreeMap::new(),
            aborts: VecDeque::new(),
            turns: VecDeque::new(),
            unsought: VecDeque::new(),
            keys: BTreeSet::new(),
            board: RefCell::default(),
        };
        for seat in 0..workers {
            envoy.vms.push(None);
            envoy.revive(seat);
        }
        envoy
    }

    /// Monotonic time in milliseconds.
    pub fn now(&self) -> Millis {
        self.process.now.get()
    }

    /// Number of workers, including dead ones.
    pub fn workers(&self) -> usize {
        self.vms.len()
    }

    /// Returns the worker at a seat, if it lives.
    pub fn worker(&self, seat: usize) -> Option<&Worker> {
        self.vms[seat].as_ref()?.worker.as_ref()
    }

    /// Returns the coalescer of a worker, if it lives.
    pub fn coalescer(&self, seat: usize) -> Option<&Coalescer> {
        self.worker(seat).map(|worker| &worker.coalescing.coalescer)
    }

    /// Returns the hash by which requests for this path wait for each other.
    pub fn key_hash(&self, key: u64) -> KeyHash {
        let mut workers = (0..self.workers()).filter_map(|seat| self.worker(seat));
        let worker = workers.next().expect("a worker that lives");
        worker.keys.key_hash(&format!("{HOST}/{key}"))
    }

    /// Whether a worker lives.
    pub fn lives(&self, worker: WorkerId) -> bool {
        let mut workers = (0..self.workers()).filter_map(|seat| self.worker(seat));
        workers.any(|living| living.identity.worker == worker)
    }

    /// Returns the stage of a request.
    pub fn stage(&self, client: Client) -> Stage {
        self.clients[client.0].stage
    }

    /// Returns the value of a counter over all workers.
    pub fn counter(&self, metric: Metric) -> u32 {
        u32::try_from(self.process.counted(metric.index())).unwrap_or(0)
    }

    /// Returns the value of a site's counter.
    pub fn counter_of(&self, site: &str, metric: Metric) -> u32 {
        let name = format!("{}.site.{site}", metric.name());
        let number = self.process.counter_of_site(&name).expect("a counter");
        u32::try_from(self.process.counted(number)).unwrap_or(0)
    }

    /// Returns the filter's log lines.
    pub fn log(&self) -> Vec<String> {
        self.process.log.borrow().clone()
    }

    /// Returns all messages between workers so far.
    pub fn sent(&self) -> Vec<Message> {
        let sent = self.process.sent.borrow();
        let decoded = sent.iter().map(|bytes| Message::decode(bytes));
        decoded.map(|message| message.expect("a message")).collect()
    }

    /// Returns the flights on the board, with the ends of their leases.
    pub fn board(&self) -> Vec<Lease> {
        self.flights().to_vec()
    }

    pub(crate) fn flights(&self) -> Rc<Vec<Lease>> {
        let mut seen = self.board.borrow_mut();
        if seen.0 != self.data.writes() {
            let values = self.data.values();
            let of_board = |(key, _): &&(String, Vec<u8>)| key.starts_with("sluice/flights");
            let slots = values.iter().filter(of_board);
            let slots = slots.map(|(_, value)| Slot::decode(value).unwrap_or_default());
            let leases = slots.flat_map(|slot| slot.leases().collect::<Vec<_>>());
            *seen = (self.data.writes(), Rc::new(leases.collect()));
        }
        Rc::clone(&seen.1)
    }

    /// Returns the leases that have not expired.
    pub fn leases(&self) -> BTreeMap<KeyHash, FlightId> {
        let flights = self.flights();
        let lasting = flights
            .iter()
            .filter(|(_, _, expires)| *expires > self.now());
        lasting.map(|(led, id, _)| (led.key, *id)).collect()
    }

    /// Number of requests on waiting lists.
    pub fn parked(&self) -> usize {
        let seats = 0..self.workers();
        seats
            .filter_map(|seat| Some(self.coalescer(seat)?.parked()))
            .sum()
    }

    /// Returns the requests to the origin that are under way.
    pub fn open_fetches(&self) -> Vec<FetchId> {
        let open = |id: &FetchId| self.fetches[id.0].phase != FetchPhase::Over;
        (0..self.fetches.len()).map(FetchId).filter(open).collect()
    }

    /// Returns the requests that are not over.
    pub fn open_clients(&self) -> Vec<Client> {
        let open = |client: &Client| !matches!(self.stage(*client), Stage::Over(_));
        (0..self.clients.len()).map(Client).filter(open).collect()
    }

    /// Makes the ended fills of this path readable, including variants.
    pub fn commit(&mut self, key: u64) {
        self.cache.commit(|known| is_of(known, key));
    }

    /// Drops the ended fills of this path that are not readable yet.
    pub fn drop_commits(&mut self, key: u64) {
        self.cache.drop_commits(|known| is_of(known, key));
    }

    /// Removes the stored responses of this path.
    pub fn evict(&mut self, key: u64) {
        self.cache.evict(|known| is_of(known, key));
    }

    /// Removes ORIGIN's marks from the stored responses of this path, as if the cache had stored a response that must
    /// not be stored.
    pub fn unmark(&mut self, key: u64) {
        self.cache.edit(
            |known| is_of(known, key),
            |headers| {
                headers.remove(ENTRY_HEADER);
            },
        );
    }

    /// Lets the cache rewrite the stored responses of this path. It has none until the next commit.
    pub fn begin_rewrite(&mut self, key: u64) {
        self.cache.begin_rewrite(|known| is_of(known, key));
    }

    /// Gives the file of one path the content of another path's file, as if both keys had one name.
    pub fn collide(&mut self, key: u64, other: u64) {
        self.cache
            .collide(|known| is_of(known, key), |known| is_of(known, other));
    }

    /// Whether the cache has a response for this path, fresh or stale.
    pub fn has(&self, key: u64) -> bool {
        self.cache.has(|known| is_of(known, key))
    }
}

/// Whether a key of the cache belongs to this path on any host, with or without qualifiers.
fn is_of(known: &str, key: u64) -> bool {
    let path = known.split_once('/').map(|(_, path)| path);
    let rest = path.and_then(|path| path.strip_prefix(&key.to_string()));
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}
