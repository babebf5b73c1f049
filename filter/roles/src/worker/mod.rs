// SPDX-License-Identifier: Apache-2.0
//! A worker: the state that all contexts of a VM share. Envoy has one VM per worker thread.

pub mod access_calls;
pub mod bodies;
pub mod coalescing;
pub mod fills;
pub mod identity;
pub mod keys;
pub mod metrics;
pub mod own_requests;
pub mod policies;
pub mod purges;
pub mod questions;
mod root;
pub mod roots;
pub mod slices;
pub mod succession;
pub mod waking;

use std::rc::Rc;

use access_calls::AccessCalls;
use bodies::AwaitedBodies;
use coalescing::Coalescing;
use fills::Fills;
use identity::Identity;
use keys::Keys;
use metrics::Metrics;
use own_requests::background;
use own_requests::calls::Calls;
use own_requests::unread;
use policies::Policies;
use purges::feed_reader::FeedReader;
use purges::purge_calls::PurgeCalls;
use questions::Questions;
use roots::Roots;
use slices::KnownObjects;
use sluice_core::access::secrets::AccessSecrets;
use sluice_core::access::verified_links::VerifiedLinks;
use sluice_core::host::HostError;
use sluice_core::inspection::recordings::origin_errors::OriginErrors;
use sluice_core::inspection::recordings::recorder::Recorder;
use sluice_core::key::secret::StoreSecret;
use sluice_core::policy::EdgePolicy;
use sluice_core::sites::{Site, Sites};
use sluice_core::workers::StreamId;
use sluice_store::Confirmations;
use sluice_store::Room;
use succession::Candidates;

use crate::request::policy::Generation;
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
    /// The requests of this worker, and its part of coalescing.
    pub coalescing: Coalescing,
    /// The responses that the store has yet to make readable.
    pub confirmations: Confirmations,
    /// The root contexts, with the timer and the queue.
    pub roots: Roots,
    /// The policies of its root contexts and requests.
    pub policies: Policies,
    /// The questions about the access of clients.
    pub access_calls: AccessCalls,
    /// The links whose signatures it has verified.
    pub verified_links: VerifiedLinks,
    /// The requests for whose body EDGE waits.
    pub bodies: AwaitedBodies,
    /// Requests on their way to the origin through the store.
    pub fills: Fills,
    /// The objects that are known to be served in slices, or not to be.
    pub slices: KnownObjects,
    /// Background calls: requests that the worker makes itself.
    pub calls: Calls,
    /// The purges that the worker carries out.
    pub purge_calls: PurgeCalls,
    /// The readings of the purge feed.
    pub feed: FeedReader,
    /// Questions of the edge's operator.
    pub questions: Questions,
    /// The last known state of the store's room.
    pub room: Room,
    /// The workers that may be the predecessor of this worker.
    pub(crate) candidates: Candidates,
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
            // Another root context of the same configuration gets the timer and the queue.
            worker.roots.add(root);
            worker.roots.register().map_err(failed)?;
            worker.resync();
            worker.settle();
            return Ok((generation, Rc::clone(&worker.identity)));
        }
        let sites = Sites::parse(configuration).map_err(|error| error.to_string())?;
        let starts = worker.is_none();
        let worker = match worker {
            Some(worker) => worker,
            None => worker.insert(Self::start(Rc::clone(host), &sites.edge).map_err(failed)?),
        };
        let secrets = open_secrets(&sites, &worker.identity.store_secret)?;
        let adopted = worker.adopt(root, configuration, sites, secrets);
        let generation = adopted.map_err(failed)?;
        if starts {
            worker.candidates = succession::candidates(&*worker.host, &worker.roots);
        }
        worker.arm_timer();
        worker.settle();
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
            coalescing: Coalescing::new(
                Rc::clone(&host),
                Rc::clone(&metrics),
                worker,
                policy.limits.hints,
            ),
            confirmations: Confirmations::default(),
            roots: Roots::new(Rc::clone(&host), Rc::clone(&metrics), worker),
            policies: Policies::default(),
            access_calls: AccessCalls::default(),
            verified_links: VerifiedLinks::default(),
            bodies: AwaitedBodies::default(),
            fills: Fills::default(),
            slices: KnownObjects::new(policy.limits.hints, &policy.slices.stored),
            calls: Calls::new(Rc::clone(&host), Rc::clone(&metrics)),
            purge_calls: PurgeCalls::new(Rc::clone(&host), Rc::clone(&metrics), worker),
            feed: FeedReader::new(Rc::clone(&host), Rc::clone(&metrics), worker),
            questions: Questions::default(),
            room: Room::default(),
            candidates: Candidates::default(),
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
        secrets: Vec<AccessSecrets>,
    ) -> host::Result<Rc<Generation>> {
        // These calls may fail, so they precede the former root context's loss of the timer and the queue.
        self.purge_calls.begin(&sites)?;
        self.roots.add(root);
        self.roots.register()?;
        let hints = sites.edge.limits.hints;
        self.coalescing.coalescer.hints().set_capacity(hints);
        self.slices.set_capacity(hints);
        self.recorder.keep_decisions(sites.edge.limits.decisions);
        let generation = self.policies.renew(configuration, sites, secrets);
        self.keys.keep_to(Rc::clone(&generation.sites));
        self.feed.keep_to(&mut self.keys, &generation.sites);
        self.keys.hot.set_shares(&self.policies.shares());
        let sites = generation.sites.sites.iter();
        self.origin_errors.keep(sites.map(Site::name));
        self.resync();
        Ok(generation)
    }

    /// Forgets a request whose client has left or has its response.
    pub fn close(&mut self, stream: StreamId) {
        if let Some(closed) = self.coalescing.requests.close(stream) {
            if let Some(capture) = closed.body.capture.take() {
                self.keys.hot.end(capture.length());
            }
            self.coalescing.wakeups.forget(stream.0);
            self.calls.take_reply(stream);
            unread::end(&mut self.calls, &closed);
            if self.coalescing.coalescer.takes_part(stream) {
                self.coalescing
                    .turn(|coalescer, turn| coalescer.closed(stream, turn));
            }
            background::rescue(&self.fills, &mut self.coalescing, &mut self.calls, &closed);
            slices::close(&mut self.coalescing, &closed);
        }
    }
}

/// The secrets of the sites, in the order of the sites. The error names the site and the secret.
fn open_secrets(sites: &Sites, secret: &StoreSecret) -> Result<Vec<AccessSecrets>, String> {
    let open = |site: &Site| {
        let opened = AccessSecrets::open(&site.policy, secret);
        opened.map_err(|error| format!("{}: {error}", site.name()))
    };
    sites.sites.iter().map(open).collect()
}
