// SPDX-License-Identifier: Apache-2.0
//! Callbacks of the host for the context of a stream.

use crate::worker::Worker;
use sluice_host::{Action, Host};

/// Lends the worker to a callback of the host, and ends the callback there.
pub fn lend<R>(worker: Option<&mut Worker>, callback: impl FnOnce(Option<&mut Worker>) -> R) -> R {
    let Some(worker) = worker else {
        return callback(None);
    };
    let result = callback(Some(worker));
    worker.settle();
    result
}

/// The context of a stream in one of the roles. A callback that a role does not implement lets the stream continue. A
/// callback does not get the worker while another callback of the same VM has it.
pub trait StreamContext {
    /// Handles the request's headers. The request ends with them if `ends`.
    fn on_request_headers(&mut self, _: &dyn Host, _: Option<&mut Worker>, _ends: bool) -> Action {
        Action::Continue
    }

    /// Handles the request's body, which has `size` bytes so far. It is complete if `ends`.
    fn on_request_body(
        &mut self,
        _: &dyn Host,
        _: Option<&mut Worker>,
        _size: usize,
        _ends: bool,
    ) -> Action {
        Action::Continue
    }

    /// Handles the end of a request with trailers.
    fn on_request_trailers(&mut self, _: &dyn Host, _: Option<&mut Worker>) -> Action {
        Action::Continue
    }

    /// Handles the response's headers. The response ends with them if `ends`.
    fn on_response_headers(&mut self, _: &dyn Host, _: Option<&mut Worker>, _ends: bool) -> Action {
        Action::Continue
    }

    /// Handles the next `size` bytes of the response's body. They are the last if `ends`.
    fn on_response_body(
        &mut self,
        _: &dyn Host,
        _: Option<&mut Worker>,
        _size: usize,
        _ends: bool,
    ) -> Action {
        Action::Continue
    }

    /// Handles the end of a response with trailers.
    fn on_response_trailers(&mut self, _: &dyn Host, _: Option<&mut Worker>) -> Action {
        Action::Continue
    }

    /// Handles the end of a call of this context, whose answer has a body of `size` bytes. `answered` is false if the
    /// call failed.
    fn on_call_response(
        &mut self,
        _: &dyn Host,
        _: Option<&mut Worker>,
        _answered: bool,
        _size: usize,
    ) {
    }

    /// Runs before the access log is written.
    fn on_log(&mut self, _: &dyn Host, _: Option<&mut Worker>) {}

    /// Handles the end of the stream.
    fn on_done(&mut self, _: Option<&mut Worker>) {}
}
