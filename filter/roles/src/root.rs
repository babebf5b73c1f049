// SPDX-License-Identifier: Apache-2.0
//! The root context of each role: configuration, timer, queue.

use std::rc::Rc;

use crate::callbacks::StreamContext;
use crate::control::{self, ControlCall};
use crate::edge::Edge;
use crate::front::Front;
use crate::origin::OriginStream;
use crate::purge_listener::PurgeCall;
use crate::request::policy::{Generation, NumberedPolicy};
use crate::worker::own_requests::call_ends;
use crate::worker::{Worker, identity::Identity};
use sluice_host::{Host, Level, Queue};

/// The `root_id` of ORIGIN in Envoy's configuration. EDGE has any that is not listed here.
pub const ORIGIN_ROOT_ID: &[u8] = b"origin";
/// The `root_id` of EDGE at the port for peers.
const PEER_ROOT_ID: &[u8] = b"peer";
/// The `root_id` of FRONT.
const FRONT_ROOT_ID: &[u8] = b"front";
/// The `root_id` of the listener for purges.
const PURGE_ROOT_ID: &[u8] = b"purge";
/// The `root_id` of the control listener.
const CONTROL_ROOT_ID: &[u8] = b"control";
/// The `root_id` of a listener for readiness checks.
const READINESS_ROOT_ID: &[u8] = b"readiness";

/// The first line of a log at the level `debug`. It names the secrets that the log will contain.
const DEBUG_NOTICE: &str = "sluice: at the levels debug and trace Envoy logs the headers of requests and responses: \
                            cookies, credentials, the tokens of purges, signatures, links of the filter";

/// The role of a root context.
#[derive(Debug)]
enum Role {
    /// Not configured yet.
    None,
    /// EDGE, in front of the cache filter, for these sites.
    Edge(Sites, Rc<Identity>),
    /// EDGE at the port for peers, for these sites.
    Peer(Sites, Rc<Identity>),
    /// ORIGIN, behind the cache filter.
    Origin,
    /// FRONT, in front of a fleet of edges that serve these sites.
    Front(Sites, Rc<Identity>),
    /// The listener for purges, which answers all requests itself.
    Purge,
    /// The control listener, which answers all requests itself.
    Control,
    /// A listener for readiness checks. A check passes if the module runs, and fails otherwise.
    Readiness,
}

/// The sites of a root context.
#[derive(Clone, Debug)]
struct Sites {
    generation: Rc<Generation>,
    /// The policy of the first site. A request has it until its site is known.
    first: NumberedPolicy,
}

impl Sites {
    /// A request of a client to one of the sites.
    fn edge(&self, context: u32, identity: &Rc<Identity>) -> Edge {
        let generation = Rc::clone(&self.generation);
        Edge::new(context, generation, self.first.clone(), Rc::clone(identity))
    }
}

/// A request of a listener for readiness checks, which passes.
struct ReadinessCheck;

impl StreamContext for ReadinessCheck {}

/// A root context.
#[derive(Debug)]
pub struct Root {
    context: u32,
    role: Role,
}

impl Root {
    /// Creates the root context of that number.
    pub fn new(context: u32) -> Self {
        Self {
            context,
            role: Role::None,
        }
    }

    /// Applies the role and the policy in the configuration of `size` bytes, also to the worker. The first
    /// configuration creates the worker in `worker`. Returns false, and logs the error, if the policy is refused.
    pub fn on_configure(
        &mut self,
        host: Rc<dyn Host>,
        worker: &mut Option<Worker>,
        size: usize,
    ) -> bool {
        let configured = self.configure(&host, worker, size);
        if let Err(error) = &configured {
            host.log(Level::Error, &format!("sluice: policy refused: {error}"));
        }
        configured.is_ok()
    }

    fn configure(
        &mut self,
        host: &Rc<dyn Host>,
        worker: &mut Option<Worker>,
        size: usize,
    ) -> Result<(), String> {
        let root_id = host.property("plugin_root_id").ok().flatten();
        let root_id = root_id.unwrap_or_default();
        // These roles have no policy, so that a reload only concerns EDGE and the listener for purges.
        let without_policy = match root_id.as_slice() {
            ORIGIN_ROOT_ID => Some(Role::Origin),
            READINESS_ROOT_ID => Some(Role::Readiness),
            CONTROL_ROOT_ID => Some(Role::Control),
            _ => None,
        };
        if let Some(role) = without_policy {
            self.role = role;
            return Ok(());
        }
        let text = host
            .plugin_configuration(size)
            .map_err(|error| error.to_string())?;
        if worker.is_none() {
            host.log(Level::Debug, DEBUG_NOTICE);
        }
        let (generation, identity) = Worker::configure(worker, host, self.context, &text)?;
        let first = generation.policy(0).ok_or("there are no sites")?.clone();
        let sites = Sites { generation, first };
        // Each root context has the sites, so that the first one to be configured after the death of a VM can start
        // the next worker.
        self.role = match root_id.as_slice() {
            PURGE_ROOT_ID => Role::Purge,
            FRONT_ROOT_ID => Role::Front(sites, identity),
            PEER_ROOT_ID => Role::Peer(sites, identity),
            _ => Role::Edge(sites, identity),
        };
        Ok(())
    }

    /// Handles the timer.
    pub fn on_tick(&self, worker: Option<&mut Worker>) {
        self.serve(worker, |worker| {
            worker.tick();
            control::go_on(worker);
        });
    }

    /// Handles messages in the worker's queue.
    pub fn on_queue_ready(&self, worker: Option<&mut Worker>) {
        self.serve(worker, |worker| {
            worker.receive();
            control::go_on(worker);
        });
    }

    /// Handles messages in `queue`, which may be the queue of a dead worker in whose place this one is.
    pub fn on_queue_ready_of(&self, mut worker: Option<&mut Worker>, queue: Queue) {
        self.serve(worker.as_deref_mut(), |worker| {
            let (host, metrics) = (&*worker.host, &worker.metrics);
            worker.candidates.hear_of(host, metrics, queue);
        });
        self.on_queue_ready(worker);
    }

    /// Handles the end of a call of this context, whose answer has a body of `size` bytes. `answered` is false if the
    /// call failed.
    pub fn on_call_response(
        &self,
        worker: Option<&mut Worker>,
        call: u32,
        answered: bool,
        size: usize,
    ) {
        self.serve(worker, |worker| {
            call_ends::call_answered(worker, call, answered, size);
            control::go_on(worker);
        });
    }

    /// Handles the end of the context.
    pub fn on_drop(&self, worker: Option<&mut Worker>) {
        if let Some(worker) = worker {
            worker.lose_root(self.context);
        }
    }

    /// Creates the context of a stream in this role.
    pub fn stream_context(&self, context: u32) -> Box<dyn StreamContext> {
        let role = self.context_of_role(context);
        #[cfg(feature = "conformance")]
        let role = Box::new(crate::conforming::Conforming::new(role));
        role
    }

    fn context_of_role(&self, context: u32) -> Box<dyn StreamContext> {
        match &self.role {
            Role::Edge(sites, identity) => Box::new(sites.edge(context, identity)),
            Role::Peer(sites, identity) => Box::new(sites.edge(context, identity).for_peers()),
            Role::Front(sites, identity) => Box::new(Front::new(
                Rc::clone(&sites.generation),
                Rc::clone(identity),
            )),
            Role::Purge => Box::new(PurgeCall::new(context)),
            Role::Control => Box::new(ControlCall::new(context)),
            Role::Readiness => Box::new(ReadinessCheck),
            Role::Origin | Role::None => Box::new(OriginStream::new(context)),
        }
    }

    /// Runs `event` on the worker, if this root context has the timer or the queue. A former root context may still
    /// be called for earlier events, and a call that it made now would be lost with it.
    fn serve(&self, worker: Option<&mut Worker>, event: impl FnOnce(&mut Worker)) {
        if let Some(worker) = worker.filter(|worker| worker.roots.serves(self.context)) {
            worker.roots.begin_callback(self.context);
            event(worker);
        }
    }
}
