// SPDX-License-Identifier: Apache-2.0
//! What the host tells the context of a stream.

use crate::worker::Worker;
use sluice_host::{Action, Host};

/// The context of a stream in one of the roles. What a role does not handle passes. A callback does not get the worker
/// while another callback of the same VM has it.
pub trait StreamContext {
    /// The request's headers have come; it ends with them if `ends`.
    fn on_request_headers(&mut self, _: &dyn Host, _: Option<&mut Worker>, _ends: bool) -> Action {
        Action::Continue
    }

    /// The request's body has `size` bytes so far, and no more if `ends`.
    fn on_request_body(
        &mut self,
        _: &dyn Host,
        _: Option<&mut Worker>,
        _size: usize,
        _ends: bool,
    ) -> Action {
        Action::Continue
    }

    /// The request has ended with trailers.
    fn on_request_trailers(&mut self, _: &dyn Host, _: Option<&mut Worker>) -> Action {
        Action::Continue
    }

    /// The response's headers have come; it ends with them if `ends`.
    fn on_response_headers(&mut self, _: &dyn Host, _: Option<&mut Worker>, _ends: bool) -> Action {
        Action::Continue
    }

    /// The next `size` bytes of the response's body have come, and no more will if `ends`.
    fn on_response_body(
        &mut self,
        _: &dyn Host,
        _: Option<&mut Worker>,
        _size: usize,
        _ends: bool,
    ) -> Action {
        Action::Continue
    }

    /// The response has ended with trailers.
    fn on_response_trailers(&mut self, _: &dyn Host, _: Option<&mut Worker>) -> Action {
        Action::Continue
    }

    /// A call of this context has been answered, or not, with a body of `size` bytes.
    fn on_call_response(
        &mut self,
        _: &dyn Host,
        _: Option<&mut Worker>,
        _answered: bool,
        _size: usize,
    ) {
    }

    /// The access log is about to be written.
    fn on_log(&mut self, _: &dyn Host, _: Option<&mut Worker>) {}

    /// The stream is over.
    fn on_done(&mut self, _: Option<&mut Worker>) {}
}
