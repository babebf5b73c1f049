// SPDX-License-Identifier: Apache-2.0
//! The root context of each role: configuration, timer, queue.

use std::rc::Rc;

use crate::callbacks::StreamContext;
use crate::edge::Edge;
use crate::front::Front;
use crate::origin::OriginStream;
use crate::purge_listener::PurgeCall;
use crate::request::policy::{Generation, NumberedPolicy};
use crate::worker::own_requests::call_ends;
use crate::worker::{Worker, identity::Identity};
use sluice_host::{Host, Level};

/// The `root_id` of ORIGIN in Envoy's configuration; any that is not among these is EDGE.
pub const ORIGIN_ROOT_ID: &[u8] = b"origin";
/// The `root_id` of FRONT.
const FRONT_ROOT_ID: &[u8] = b"front";
/// The `root_id` of the listener for purges.
const PURGE_ROOT_ID: &[u8] = b"purge";
/// The `root_id` of a listener for readiness checks.
const READINESS_ROOT_ID: &[u8] = b"readiness";

/// The line with which a log at the level `debug` begins: it names the secrets that the log will have.
const DEBUG_NOTICE: &str = "sluice: at the levels debug and trace Envoy logs the headers of requests and responses: \
                            cookies, credentials, the tokens of purges, signatures, links of the filter";

/// The role of a root context.
#[derive(Debug)]
enum Role {
    /// Not configured yet.
    None,
    /// Before the cache filter, for these sites.
    Edge(Sites, Rc<Identity>),
    /// Behind it.
    Origin,
    /// Before a fleet of edges, which serve these sites.
    Front(Sites),
    /// Before nothing: purges end here.
    Purge,
    /// Where readiness checks pass, which fail where there is no module.
    Readiness,
}

/// The sites of a root context.
#[derive(Clone, Debug)]
struct Sites {
    generation: Rc<Generation>,
    /// The policy of the first of them, under which requests are until their site is known.
    first: NumberedPolicy,
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
    /// The root context of that number.
    pub fn new(context: u32) -> Self {
        Self {
            context,
            role: Role::None,
        }
    }

    /// Takes the role and the policy that the configuration of `size` bytes says, and brings the worker under them,
    /// which starts in `worker` with the first. False, and logged, if the policy is refused.
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
        if root_id == ORIGIN_ROOT_ID {
            self.role = Role::Origin;
            return Ok(());
        }
        if root_id == READINESS_ROOT_ID {
            self.role = Role::Readiness;
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
        // Each has the sites, so that whichever comes first after the death of a VM can use the next.
        self.role = match root_id.as_slice() {
            PURGE_ROOT_ID => Role::Purge,
            FRONT_ROOT_ID => Role::Front(sites),
            _ => Role::Edge(sites, identity),
        };
        Ok(())
    }

    /// The timer is due.
    pub fn on_tick(&self, worker: Option<&mut Worker>) {
        self.serve(worker, Worker::tick);
    }

    /// There are messages in the worker's queue.
    pub fn on_queue_ready(&self, worker: Option<&mut Worker>) {
        self.serve(worker, Worker::receive);
    }

    /// A call of this context has been answered, or not, with a body of `size` bytes.
    pub fn on_call_response(
        &self,
        worker: Option<&mut Worker>,
        call: u32,
        answered: bool,
        size: usize,
    ) {
        self.serve(worker, |worker| {
            call_ends::call_answered(worker, call, answered, size)
        });
    }

    /// The context goes.
    pub fn on_drop(&self, worker: Option<&mut Worker>) {
        if let Some(worker) = worker {
            worker.lose_root(self.context);
        }
    }

    /// The context of a stream in this role.
    pub fn stream_context(&self, context: u32) -> Box<dyn StreamContext> {
        let role = self.context_of_role(context);
        #[cfg(feature = "conformance")]
        let role = Box::new(crate::conforming::Conforming::new(role));
        role
    }

    fn context_of_role(&self, context: u32) -> Box<dyn StreamContext> {
        match &self.role {
            Role::Edge(sites, identity) => Box::new(Edge::new(
                context,
                Rc::clone(&sites.generation),
                sites.first.clone(),
                Rc::clone(identity),
            )),
            Role::Front(sites) => Box::new(Front::new(Rc::clone(&sites.generation))),
            Role::Purge => Box::new(PurgeCall::new(context)),
            Role::Readiness => Box::new(ReadinessCheck),
            Role::Origin | Role::None => Box::new(OriginStream::new(context)),
        }
    }

    /// Has the worker go on, if this root context has the timer or the queue. A former one may still be called for what
    /// was on its way, and a call that it made now would be lost with it.
    fn serve(&self, worker: Option<&mut Worker>, event: impl FnOnce(&mut Worker)) {
        if let Some(worker) = worker.filter(|worker| worker.roots.serves(self.context)) {
            worker.roots.begin_callback(self.context);
            event(worker);
        }
    }
}
