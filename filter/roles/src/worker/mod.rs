// SPDX-License-Identifier: Apache-2.0
//! A worker: the state that all contexts of a VM share. Envoy has one VM per worker thread.

mod background;
mod calls;
mod due;
pub mod fills;
mod hot;
pub mod identity;
mod keys;
mod known_keys;
mod lengths;
mod looks;
mod metrics;
mod policies;
mod probes;
mod purge_calls;
mod purging;
mod replies;
mod resumption;
mod root;
mod roots;
pub mod substitutes;
mod turn;

use std::collections::HashMap;
use std::rc::Rc;

use sluice_core::coalescing::Coalescer;
use sluice_core::hot::HotTier;
use sluice_core::metrics::Metric;
use sluice_core::policy::Policy;
use sluice_core::workers::StreamId;
use sluice_core::workers::WorkerId;
use sluice_core::workers::agreement::take_number;

use crate::host::{self, Host};
use crate::request::EdgeRequest;
use crate::request::policy::NumberedPolicy;
use calls::Calls;
use due::Due;
use fills::Fills;
use identity::Identity;
use known_keys::KnownKeys;
use metrics::Metrics;
use policies::Policies;
pub use purge_calls::Unavailable;
use purging::{Purging, host_error};
use roots::Roots;
use substitutes::Substitutes;

/// One worker's part of the filter.
#[derive(Debug)]
pub struct Worker {
    /// What runs it.
    pub host: Rc<dyn Host>,
    /// Counters, gauges, and the log.
    pub metrics: Metrics,
    /// What it is known by.
    pub identity: Rc<Identity>,
    coalescer: Coalescer,
    /// The root contexts, with the timer and the queue.
    roots: Roots,
    /// The policies of its root contexts and requests.
    pub policies: Policies,
    streams: HashMap<StreamId, Rc<EdgeRequest>>,
    known: KnownKeys,
    /// Requests on their way to the origin through the store.
    pub fills: Fills,
    /// Requests of its own.
    pub calls: Calls,
    purging: Purging,
    substitutes: Substitutes,
    /// What waits for a turn of the root context.
    pub due: Due,
}

impl Worker {
    /// Brings the worker under a new policy, whose root context gets the timer and the queue. The first policy starts
    /// it.
    ///
    /// # Errors
    /// The host refused what the worker cannot do without.
    pub fn configure(
        worker: &mut Option<Self>,
        host: &Rc<dyn Host>,
        root: u32,
        policy: Policy,
    ) -> host::Result<(NumberedPolicy, Rc<Identity>)> {
        let worker = match worker {
            Some(worker) => worker,
            None => worker.insert(Self::start(Rc::clone(host), &policy)?),
        };
        Ok((worker.adopt(root, policy)?, Rc::clone(&worker.identity)))
    }

    fn start(host: Rc<dyn Host>, policy: &Policy) -> host::Result<Self> {
        let number = take_number(&*host).map_err(host_error)?;
        Ok(Self {
            metrics: Metrics::define(&host),
            identity: Rc::new(Identity::new(&*host)?),
            coalescer: Coalescer::new(number, policy.limits.hints),
            roots: Roots::default(),
            policies: Policies::default(),
            streams: HashMap::new(),
            known: KnownKeys::new(policy),
            fills: Fills::default(),
            calls: Calls::default(),
            purging: Purging::default(),
            substitutes: Substitutes::default(),
            due: Due::default(),
            host,
        })
    }

    fn adopt(&mut self, root: u32, policy: Policy) -> host::Result<NumberedPolicy> {
        self.roots.add(root);
        self.roots.register(&*self.host, self.id())?;
        self.coalescer.hints().set_capacity(policy.limits.hints);
        self.known.keep_to(&policy);
        self.begin_purging(&policy)?;
        // Keys and headers may be others now.
        let last = self.policies.newest();
        if last.is_none_or(|last| *last.policy != policy) {
            self.known.hot = HotTier::new(policy.hot);
        }
        let policy = self.policies.add(policy);
        self.resync();
        Ok(policy)
    }

    /// This worker's number.
    pub fn id(&self) -> WorkerId {
        self.coalescer.worker()
    }

    /// Its part in coalescing.
    pub fn coalescer(&self) -> &Coalescer {
        &self.coalescer
    }

    /// Makes a request known to ORIGIN and to the waiting lists.
    pub fn open(&mut self, stream: &Rc<EdgeRequest>) {
        self.streams.insert(stream.id, Rc::clone(stream));
    }

    /// Forgets a request whose client has gone or has its response.
    pub fn close(&mut self, stream: StreamId) {
        if let Some(closed) = self.streams.remove(&stream) {
            if let Some(capture) = closed.capture.take() {
                self.drop_capture(&capture);
            }
            self.due.forget(stream.0);
            if self.coalescer.takes_part(stream) {
                self.turn(stream.0, |coalescer, turn| coalescer.closed(stream, turn));
            }
            self.rescue(&closed);
        }
    }

    /// The request, while its client is there.
    pub fn stream(&self, stream: StreamId) -> Option<Rc<EdgeRequest>> {
        self.streams.get(&stream).cloned()
    }

    /// Publishes how much there is of everything.
    fn publish_gauges(&mut self) {
        let values = [
            (Metric::ParkedNow, self.coalescer.parked()),
            (Metric::FlightsNow, self.coalescer.flights()),
            (Metric::HintsNow, self.coalescer.hints().len()),
        ];
        self.metrics.set_gauges(&values);
        self.publish_hot();
    }
}
