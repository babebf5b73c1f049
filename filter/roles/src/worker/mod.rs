// SPDX-License-Identifier: Apache-2.0
//! A worker: the state that all contexts of a VM share. Envoy has one VM per worker thread.

pub mod bodies;
pub mod fills;
pub mod identity;
pub mod keys;
pub mod metrics;
pub mod own_requests;
pub mod policies;
pub mod purges;
pub mod questions;
pub mod requests;
mod root;
pub mod roots;
pub mod slices;
mod succession;
pub mod waking;

use std::rc::Rc;

use bodies::AwaitedBodies;
use fills::Fills;
use identity::Identity;
use keys::Keys;
use metrics::Metrics;
use own_requests::ahead::{self, Ahead};
use own_requests::background;
use own_requests::calls::Calls;
use own_requests::unread;
use policies::Policies;
use purges::purge_calls::{PurgeCalls, Unavailable};
use questions::Questions;
use requests::OpenRequests;
use roots::Roots;
use slices::KnownObjects;
use sluice_core::coalescing::beside::unread::UnreadFills;
use sluice_core::coalescing::learnt::hints::Hint;
use sluice_core::coalescing::{Coalescer, NextStep, StoreRequest};
use sluice_core::freshness::UncacheableReason;
use sluice_core::host::HostError;
use sluice_core::inspection::recordings::origin_errors::OriginErrors;
use sluice_core::inspection::recordings::recorder::Recorder;
use sluice_core::metrics::Metric;
use sluice_core::policy::{EdgePolicy, Policy};
use sluice_core::purge::{PurgeOrder, TagHash, url_of};
use sluice_core::sites::{Site, Sites};
use sluice_core::slices::connections::SlicedConnections;
use sluice_core::workers::{KeyHash, Millis, StreamId};
use sluice_store::Confirmations;
use sluice_store::Room;
use succession::Candidates;
use waking::wakeups::Wakeups;

use crate::request::EdgeRequest;
use crate::request::policy::{Generation, NumberedPolicy};
use sluice_host::{self as host, Host};

/// The state of the filter in one worker.
#[derive(Debug)]
pub struct Worker {
    /// The host that runs the worker.
    pub host: Rc<dyn Host>,
    /// Counters, gauges, and the log.
    pub metrics: Rc<Metrics>,
    /// The number and the secrets of the worker.
    pub identity: Rc<Identity>,
    /// The hashes of keys, their purges, and facts about their responses.
    pub keys: Keys,
    /// This worker's part of coalescing. Its events pass through [`Worker::turn`].
    pub coalescer: Coalescer,
    /// The responses that the store has yet to make readable.
    pub confirmations: Confirmations,
    /// The root contexts, with the timer and the queue.
    pub roots: Roots,
    /// The policies of its root contexts and requests.
    pub policies: Policies,
    /// The requests of EDGE whose clients are still connected.
    pub requests: OpenRequests,
    /// The requests for whose body EDGE waits.
    pub bodies: AwaitedBodies,
    /// Requests on their way to the origin through the store.
    pub fills: Fills,
    /// The budget of fills that no client reads.
    pub unread: UnreadFills,
    /// Ranges that are sent to the origin ahead of a fill.
    pub ahead: Ahead,
    /// The objects that are known to be served in slices, or not to be.
    pub slices: KnownObjects,
    /// The responses in slices of each client's connection.
    pub sliced: SlicedConnections,
    /// Background calls: requests that the worker makes itself.
    pub calls: Calls,
    /// The purges that the worker carries out.
    pub purge_calls: PurgeCalls,
    /// Questions of the edge's operator.
    pub questions: Questions,
    /// Replies and requests that wait for a turn of the root context.
    pub wakeups: Wakeups,
    /// The last known state of the store's room.
    pub room: Room,
    /// The workers that may be the predecessor of this worker.
    candidates: Candidates,
    /// The requests that are recorded for the operator.
    pub recorder: Recorder,
    /// The last error of each site's origin.
    pub origin_errors: OriginErrors,
}

impl Worker {
    /// Applies a new configuration. Its root context gets the timer and the queue. The first configuration creates
    /// the worker.
    ///
    /// # Errors
    /// The error in the configuration, or the failure of a host call without which the worker cannot run.
    pub fn configure(
        worker: &mut Option<Self>,
        host: &Rc<dyn Host>,
        root: u32,
        configuration: &[u8],
    ) -> Result<(Rc<Generation>, Rc<Identity>), String> {
        let failed = |error: HostError| error.to_string();
        if let Some(worker) = worker
            && let Some(generation) = worker.policies.of(configuration)
        {
            worker.keep(root).map_err(failed)?;
            return Ok((generation, Rc::clone(&worker.identity)));
        }
        let sites = Sites::parse(configuration).map_err(|error| error.to_string())?;
        let starts = worker.is_none();
        let worker = match worker {
            Some(worker) => worker,
            None => worker.insert(Self::start(Rc::clone(host), &sites.edge).map_err(failed)?),
        };
        let generation = worker.adopt(root, configuration, sites).map_err(failed)?;
        if starts {
            worker.seek_predecessor();
        }
        Ok((generation, Rc::clone(&worker.identity)))
    }

    fn start(host: Rc<dyn Host>, policy: &EdgePolicy) -> host::Result<Self> {
        let identity = Rc::new(Identity::new(&*host)?);
        let metrics = Rc::new(Metrics::define(Rc::clone(&host)));
        let worker = identity.worker;
        Ok(Self {
            keys: Keys::new(
                Rc::clone(&host),
                Rc::clone(&metrics),
                Rc::clone(&identity),
                policy,
            ),
            coalescer: Coalescer::new(worker, policy.limits.hints),
            confirmations: Confirmations::default(),
            roots: Roots::new(Rc::clone(&host), Rc::clone(&metrics), worker),
            policies: Policies::default(),
            requests: OpenRequests::default(),
            bodies: AwaitedBodies::default(),
            fills: Fills::default(),
            unread: UnreadFills::default(),
            ahead: Ahead::default(),
            slices: KnownObjects::new(policy.limits.hints),
            sliced: SlicedConnections::default(),
            calls: Calls::default(),
            purge_calls: PurgeCalls::new(Rc::clone(&host), Rc::clone(&metrics), worker),
            questions: Questions::default(),
            wakeups: Wakeups::default(),
            room: Room::default(),
            candidates: Candidates::new(),
            recorder: Recorder::default(),
            origin_errors: OriginErrors::default(),
            host,
            metrics,
            identity,
        })
    }

    fn adopt(
        &mut self,
        root: u32,
        configuration: &[u8],
        sites: Sites,
    ) -> host::Result<Rc<Generation>> {
        // These calls may fail, so they precede the former root context's loss of the timer and the queue.
        self.purge_calls.begin(&sites)?;
        self.roots.add(root);
        self.register()?;
        let hints = sites.edge.limits.hints;
        self.coalescer.hints().set_capacity(hints);
        self.slices.set_capacity(hints);
        self.recorder.keep_decisions(sites.edge.limits.decisions);
        let generation = self.policies.renew(configuration, sites);
        self.keys.keep_to(Rc::clone(&generation.sites));
        self.keys.hot.set_shares(&self.policies.shares());
        let sites = generation.sites.sites.iter();
        self.origin_errors.keep(sites.map(Site::name));
        self.resync();
        Ok(generation)
    }

    /// Registers this worker's queue.
    pub(in crate::worker) fn register(&mut self) -> host::Result<()> {
        self.roots.register()?;
        let worker = self.identity.worker;
        self.metrics.belong_to(worker, self.roots.receiver());
        Ok(())
    }

    /// Gives the timer and the queue to another root context of the same configuration.
    fn keep(&mut self, root: u32) -> host::Result<()> {
        self.roots.add(root);
        self.register()?;
        self.resync();
        Ok(())
    }

    /// Whether this worker has a hint for a key, even an outdated one.
    pub fn remembers(&mut self, cache_key: &str) -> bool {
        let key = self.keys.key_hash(cache_key);
        self.coalescer.hints().remembers(key)
    }

    /// Whether this worker believes that the store can serve a key without the origin. Requests for it neither lead
    /// nor wait.
    pub fn believes_fresh(&mut self, key: KeyHash) -> bool {
        let now = self.host.monotonic_millis();
        self.coalescer.remembered(key, now) == Some(NextStep::Send(StoreRequest::Fresh))
    }

    /// Forgets a request whose client has left or has its response.
    pub fn close(&mut self, stream: StreamId) {
        if let Some(closed) = self.requests.close(stream) {
            if let Some(capture) = closed.body.capture.take() {
                self.keys.hot.end(capture.length());
            }
            self.wakeups.forget(stream.0);
            self.calls.take_reply(stream);
            unread::end(&mut self.unread, &closed);
            if self.coalescer.takes_part(stream) {
                self.turn(stream.0, |coalescer, turn| coalescer.closed(stream, turn));
            }
            background::rescue(self, &closed);
            ahead::close(self, &closed);
            slices::close(self, &closed);
        }
    }

    /// Carries out a purge. `context` gets the receipt after all workers and the journal have answered.
    ///
    /// # Errors
    /// The purge cannot be carried out now.
    pub fn purge(&mut self, context: u32, order: &PurgeOrder) -> Result<(), Unavailable> {
        let (keys, roots) = (&mut self.keys, &mut self.roots);
        self.purge_calls.purge(keys, roots, context, order)
    }

    /// Makes the store revalidate the responses of these URLs of a site, because an unsafe request has changed them
    /// (RFC 9111, 4.4).
    pub fn invalidate(&mut self, policy: &Policy, urls: &[String]) {
        let (keys, roots) = (&mut self.keys, &mut self.roots);
        let mut scopes: Vec<_> = urls.iter().map(|url| keys.scope_of(url)).collect();
        scopes.sort_unstable();
        scopes.dedup();
        let site = policy.site.name.as_str();
        self.purge_calls.invalidate(keys, roots, site, &scopes);
    }

    /// Makes the store revalidate the responses of these cache groups, because an unsafe request has changed them
    /// (RFC 9875, 3).
    pub fn invalidate_groups(&mut self, policy: &Policy, groups: &[TagHash]) {
        let (keys, roots) = (&mut self.keys, &mut self.roots);
        let site = policy.site.name.as_str();
        self.purge_calls
            .invalidate_groups(keys, roots, site, groups);
    }

    /// Purges a stored response that the store has damaged.
    pub fn discard(&mut self, stream: &EdgeRequest) {
        let url = url_of(&stream.policy.policy, stream.target.url());
        let (keys, roots) = (&mut self.keys, &mut self.roots);
        let url = keys.scope_of(url);
        self.purge_calls.discard(keys, roots, url);
    }

    /// Marks a key whose object is too large as hit-for-miss, so that requests for it bypass the store for a while.
    fn mark_too_large(&mut self, key: KeyHash, policy: &NumberedPolicy) {
        let (most, now) = (policy.flights.hit_for_miss, self.host.monotonic_millis());
        let reason = UncacheableReason::TooLarge;
        self.metrics.count(Metric::HitForMissMarked, 1);
        self.coalescer.hints().mark(key, reason, most, now);
    }

    /// Marks a key whose file belongs to another key as hit-for-miss, so that requests for it bypass the store.
    /// Returns when the mark expires.
    fn mark_mismatch(&mut self, key: KeyHash, policy: &NumberedPolicy) -> Millis {
        let now = self.host.monotonic_millis();
        let until = now.saturating_add(policy.flights.hit_for_miss);
        self.metrics.count(Metric::HitForMissMarked, 1);
        let hint = Hint::HitForMiss(UncacheableReason::KeyMismatch);
        self.coalescer.hints().set(key, hint, until);
        until
    }

    /// Publishes the gauges.
    fn publish_gauges(&mut self) {
        let (parked, flights) = (self.coalescer.parked(), self.coalescer.flights());
        let hints = self.coalescer.hints().len();
        self.metrics.publish(&[
            (Metric::ParkedNow, parked),
            (Metric::FlightsNow, flights),
            (Metric::HintsNow, hints),
            (Metric::SliceIndexesNow, self.slices.count()),
        ]);
        self.keys.publish_hot();
    }
}
