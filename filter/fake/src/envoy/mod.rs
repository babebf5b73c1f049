// SPDX-License-Identifier: Apache-2.0
//! The fake Envoy: its workers, what they share, its cache, and what is under way.

mod callbacks;
mod calls;
mod chain;
mod origin;
mod purges;
mod requests;
mod responses;
mod rules;
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

/// The whole of it.
#[derive(Debug)]
pub struct FakeEnvoy {
    /// What the workers share.
    pub data: Rc<FakeSharedData>,
    /// For how many seconds a response that can be stored is fresh.
    pub ttl: u64,
    /// Further directives that the origin sends with its objects, with a comma before each.
    pub directives: &'static str,
    /// Whether the disk of the cache is full.
    pub full: bool,
    /// Whether resets that are asked for in another stream's name wait for [`FakeEnvoy::carry_out_aborts`].
    pub slow_aborts: bool,
    /// Whether no background fill leads for anyone, as its call fails.
    pub calls_fail: bool,
    /// Whether the filter's own calls, lookups aside, wait for [`FakeEnvoy::send_calls`].
    pub hold_calls: bool,
    /// Whether root contexts get their turns only by [`FakeEnvoy::take_turns`].
    pub hold_turns: bool,
    /// Whether the cache takes part in a request whatever its `If-Range`, as no Envoy does.
    pub ignores_if_range: bool,
    /// What flights take from the policy.
    pub policy: FlightPolicy,
    /// All requests so far.
    pub clients: Vec<ClientRecord>,
    /// All requests to the origin so far.
    pub fetches: Vec<Fetch>,
    cache: FakeCache,
    process: Rc<Process>,
    /// The policy document.
    document: Rc<[u8]>,
    vms: Vec<Option<Vm>>,
    exchanges: Vec<Exchange>,
    contexts: HashMap<(usize, u32), (Client, Side)>,
    /// Resets that wait.
    aborts: VecDeque<(usize, u32)>,
    /// Root contexts whose turn waits.
    turns: VecDeque<(usize, u32)>,
    /// The hashes of all keys that requests were for.
    keys: BTreeSet<KeyHash>,
    /// [`FakeEnvoy::board`] as of so many writes.
    board: RefCell<(u32, Rc<Vec<Lease>>)>,
}

impl FakeEnvoy {
    /// A process with that many workers, under the policy of a document in JSON.
    pub fn new(document: &str, workers: usize) -> Self {
        Self::in_environment(document, workers, &[])
    }

    /// The same, with these variables in the environment of its VMs.
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
            slow_aborts: false,
            calls_fail: false,
            hold_calls: false,
            hold_turns: false,
            ignores_if_range: false,
            policy: FlightPolicy::of(&sites.sites[0].policy),
            clients: Vec::new(),
            fetches: Vec::new(),
            cache: FakeCache::default(),
            process,
            document: document.as_bytes().into(),
            vms: Vec::new(),
            exchanges: Vec::new(),
            contexts: HashMap::new(),
            aborts: VecDeque::new(),
            turns: VecDeque::new(),
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

    /// Number of workers, dead ones included.
    pub fn workers(&self) -> usize {
        self.vms.len()
    }

    /// The worker at a seat, if it lives.
    pub fn worker(&self, seat: usize) -> Option<&Worker> {
        self.vms[seat].as_ref()?.worker.as_ref()
    }

    /// The coalescer of a worker that lives.
    pub fn coalescer(&self, seat: usize) -> Option<&Coalescer> {
        self.worker(seat).map(|worker| &worker.coalescer)
    }

    /// The hash by which requests for that path wait for each other.
    pub fn key_hash(&self, key: u64) -> KeyHash {
        let mut workers = (0..self.workers()).filter_map(|seat| self.worker(seat));
        let worker = workers.next().expect("a worker that lives");
        worker.keys.key_hash(&format!("{HOST}/{key}"))
    }

    /// Whether that worker lives.
    pub fn lives(&self, worker: WorkerId) -> bool {
        let mut workers = (0..self.workers()).filter_map(|seat| self.worker(seat));
        workers.any(|living| living.identity.worker == worker)
    }

    /// Where that request is.
    pub fn stage(&self, client: Client) -> Stage {
        self.clients[client.0].stage
    }

    /// What a counter counts, over all workers.
    pub fn counter(&self, metric: Metric) -> u32 {
        u32::try_from(self.process.counted(metric.index())).unwrap_or(0)
    }

    /// What a counter of a site says.
    pub fn counter_of(&self, site: &str, metric: Metric) -> u32 {
        let name = format!("{}.site.{site}", metric.name());
        let number = self.process.counter_of_site(&name).expect("a counter");
        u32::try_from(self.process.counted(number)).unwrap_or(0)
    }

    /// What the filter has logged.
    pub fn log(&self) -> Vec<String> {
        self.process.log.borrow().clone()
    }

    /// All messages between workers so far.
    pub fn sent(&self) -> Vec<Message> {
        let sent = self.process.sent.borrow();
        let decoded = sent.iter().map(|bytes| Message::decode(bytes));
        decoded.map(|message| message.expect("a message")).collect()
    }

    /// Flights on the board, with the end of their leases.
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

    /// Leases that have not run out.
    pub fn leases(&self) -> BTreeMap<KeyHash, FlightId> {
        let flights = self.flights();
        let lasting = flights
            .iter()
            .filter(|(_, _, expires)| *expires > self.now());
        lasting.map(|(led, id, _)| (led.key, *id)).collect()
    }

    /// Requests on waiting lists.
    pub fn parked(&self) -> usize {
        let seats = 0..self.workers();
        seats
            .filter_map(|seat| Some(self.coalescer(seat)?.parked()))
            .sum()
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

    /// Makes readable what the cache has got whole for that path, variants included.
    pub fn commit(&mut self, key: u64) {
        self.cache.commit(|known| is_of(known, key));
    }

    /// Has the cache forget what it has got whole and has not made readable.
    pub fn drop_commits(&mut self, key: u64) {
        self.cache.drop_commits(|known| is_of(known, key));
    }

    /// Removes what the cache has for that path.
    pub fn evict(&mut self, key: u64) {
        self.cache.evict(|known| is_of(known, key));
    }

    /// Takes ORIGIN's marks from what the cache has for that path, as if it had stored what was not to be stored.
    pub fn unmark(&mut self, key: u64) {
        self.cache.edit(
            |known| is_of(known, key),
            |headers| {
                headers.remove(ENTRY_HEADER);
            },
        );
    }

    /// Has the cache write anew what it has for that path, and have nothing until the next commit.
    pub fn begin_rewrite(&mut self, key: u64) {
        self.cache.begin_rewrite(|known| is_of(known, key));
    }

    /// Has the file of one path hold what that of another one does, as where both keys have one name.
    pub fn collide(&mut self, key: u64, other: u64) {
        self.cache
            .collide(|known| is_of(known, key), |known| is_of(known, other));
    }

    /// Whether the cache has something for that path, fresh or stale.
    pub fn has(&self, key: u64) -> bool {
        self.cache.has(|known| is_of(known, key))
    }
}

/// Whether a key of the cache is that of a path on any host, with qualifiers or without.
fn is_of(known: &str, key: u64) -> bool {
    let path = known.split_once('/').map(|(_, path)| path);
    let rest = path.and_then(|path| path.strip_prefix(&key.to_string()));
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}
