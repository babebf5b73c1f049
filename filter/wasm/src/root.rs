// SPDX-License-Identifier: Apache-2.0
//! The root context of each role: configuration, timer, queue.

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;
use sluice_core::policy::Policy;

use crate::edge::Edge;
use crate::front::Front;
use crate::host::{self, Level};
use crate::origin::OriginStream;
use crate::purge_listener::PurgeCall;
use crate::request::policy::NumberedPolicy;
use crate::worker::{self, Worker};

/// The `root_id` of ORIGIN in Envoy's configuration; any that is not among these is EDGE.
const ORIGIN_ROOT_ID: &[u8] = b"origin";
/// The `root_id` of FRONT.
const FRONT_ROOT_ID: &[u8] = b"front";
/// The `root_id` of the listener for purges.
const PURGE_ROOT_ID: &[u8] = b"purge";

/// The `root_id` of a listener for probes.
const PROBE_ROOT_ID: &[u8] = b"probe";

/// The role of a root context.
#[derive(Debug)]
enum Role {
    /// Not configured yet.
    None,
    /// Before the cache filter, under this policy.
    Edge(NumberedPolicy),
    /// Behind it.
    Origin,
    /// Before a fleet of edges, whose policy this is.
    Front(NumberedPolicy),
    /// Before nothing: purges end here.
    Purge,
    /// Where probes pass, which fail where there is no module.
    Probe,
}

/// A request of a listener for probes, which passes.
struct Probe;

impl Context for Probe {}

impl HttpContext for Probe {}

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

    fn configure(&mut self, size: usize) -> Result<(), String> {
        let root_id = host::property("plugin_root_id")
            .ok()
            .flatten()
            .unwrap_or_default();
        if root_id == ORIGIN_ROOT_ID {
            self.role = Role::Origin;
            return Ok(());
        }
        if root_id == PROBE_ROOT_ID {
            self.role = Role::Probe;
            return Ok(());
        }
        let text = host::plugin_configuration(size).map_err(|error| error.to_string())?;
        let policy = Policy::parse(&text).map_err(|error| error.to_string())?;
        let policy = worker::configure(self.context, policy).map_err(|error| error.to_string())?;
        // Each has the policy, so that whichever comes first after the death of a VM can use the next.
        self.role = match root_id.as_slice() {
            PURGE_ROOT_ID => Role::Purge,
            FRONT_ROOT_ID => Role::Front(policy),
            _ => Role::Edge(policy),
        };
        Ok(())
    }

    /// Has the worker go on, if it is this root context that has the timer and the queue. A former one may still be
    /// called for what was on its way, and a call that it made now would be lost with it.
    fn serve(&self, event: impl FnOnce(&mut Worker)) {
        worker::with(|worker| worker.is_root(self.context).then(|| event(worker)));
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        worker::with(|worker| worker.lose_root(self.context));
    }
}

impl Context for Root {
    fn on_http_call_response(&mut self, call: u32, headers: usize, body_size: usize, _: usize) {
        self.serve(|worker| worker.call_answered(call, headers > 0, body_size));
    }
}

impl RootContext for Root {
    fn on_configure(&mut self, size: usize) -> bool {
        match self.configure(size) {
            Ok(()) => true,
            Err(error) => {
                host::log(Level::Error, &format!("sluice: policy refused: {error}"));
                false
            }
        }
    }

    fn on_tick(&mut self) {
        self.serve(Worker::tick);
    }

    fn on_queue_ready(&mut self, _: u32) {
        self.serve(Worker::receive);
    }

    fn create_http_context(&self, context: u32) -> Option<Box<dyn HttpContext>> {
        Some(match &self.role {
            Role::Edge(policy) => Box::new(Edge::new(context, policy.clone())),
            Role::Front(policy) => Box::new(Front::new(policy.clone())),
            Role::Purge => Box::new(PurgeCall::new(context)),
            Role::Probe => Box::new(Probe),
            Role::Origin | Role::None => Box::new(OriginStream::new(context)),
        })
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}
