// SPDX-License-Identifier: Apache-2.0
//! Envoy's callbacks, which the SDK dispatches to the roles.

use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{self, ContextType};
use sluice_host::{Action, Queue};
use sluice_roles::callbacks::StreamContext;
use sluice_roles::root::Root;

use crate::host::Envoy;
use crate::worker;

/// The context of a stream.
struct Stream(Box<dyn StreamContext>);

/// A root context.
pub struct EnvoyRoot(Root);

impl EnvoyRoot {
    /// The root context of that number.
    pub fn new(context: u32) -> Self {
        Self(Root::new(context))
    }
}

const fn action(action: Action) -> types::Action {
    match action {
        Action::Continue => types::Action::Continue,
        Action::Pause => types::Action::Pause,
    }
}

impl Context for Stream {
    fn on_http_call_response(&mut self, _: u32, headers: usize, size: usize, _: usize) {
        worker::lend(|worker| self.0.on_call_response(&Envoy, worker, headers > 0, size));
    }

    fn on_done(&mut self) -> bool {
        worker::lend(|worker| self.0.on_done(worker));
        true
    }
}

impl HttpContext for Stream {
    fn on_http_request_headers(&mut self, _: usize, ends: bool) -> types::Action {
        #[cfg(feature = "trap")]
        crate::trap::on_demand();
        action(worker::lend(|worker| {
            self.0.on_request_headers(&Envoy, worker, ends)
        }))
    }

    fn on_http_request_body(&mut self, size: usize, ends: bool) -> types::Action {
        action(worker::lend(|worker| {
            self.0.on_request_body(&Envoy, worker, size, ends)
        }))
    }

    fn on_http_request_trailers(&mut self, _: usize) -> types::Action {
        action(worker::lend(|worker| {
            self.0.on_request_trailers(&Envoy, worker)
        }))
    }

    fn on_http_response_headers(&mut self, _: usize, ends: bool) -> types::Action {
        action(worker::lend(|worker| {
            self.0.on_response_headers(&Envoy, worker, ends)
        }))
    }

    fn on_http_response_body(&mut self, size: usize, ends: bool) -> types::Action {
        action(worker::lend(|worker| {
            self.0.on_response_body(&Envoy, worker, size, ends)
        }))
    }

    fn on_http_response_trailers(&mut self, _: usize) -> types::Action {
        action(worker::lend(|worker| {
            self.0.on_response_trailers(&Envoy, worker)
        }))
    }

    fn on_log(&mut self) {
        worker::lend(|worker| self.0.on_log(&Envoy, worker));
    }
}

impl Drop for EnvoyRoot {
    fn drop(&mut self) {
        worker::lend(|worker| self.0.on_drop(worker));
    }
}

impl Context for EnvoyRoot {
    fn on_http_call_response(&mut self, call: u32, headers: usize, size: usize, _: usize) {
        worker::lend(|worker| self.0.on_call_response(worker, call, headers > 0, size));
    }
}

impl RootContext for EnvoyRoot {
    fn on_configure(&mut self, size: usize) -> bool {
        worker::with_slot(|slot| self.0.on_configure(Rc::new(Envoy), slot, size))
    }

    fn on_tick(&mut self) {
        worker::lend(|worker| self.0.on_tick(worker));
    }

    fn on_queue_ready(&mut self, queue: u32) {
        worker::lend(|worker| self.0.on_queue_ready_of(worker, Queue(queue)));
    }

    fn create_http_context(&self, context: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Stream(self.0.stream_context(context))))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}
