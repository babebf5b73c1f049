// SPDX-License-Identifier: Apache-2.0
//! The control listener, by which the entry point asks the workers on behalf of the edge's operator. It listens on a
//! Unix socket that only the edge's user can open, so it asks for no token.

mod answers;
mod turn;

use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::inspection::Question;

use crate::callbacks::StreamContext;
use crate::reply::refusal::answer_refusal;
use crate::worker::Worker;
use crate::worker::purges::purge_calls::Unavailable;
use sluice_host::headers::Headers;
use sluice_host::{Action, Half, Host, Map};

pub use turn::go_on;

/// The refusal of a request.
struct ControlRefusal {
    status: u16,
    error: String,
}

impl ControlRefusal {
    fn new(status: u16, error: impl Into<String>) -> Self {
        let error = error.into();
        Self { status, error }
    }
}

impl From<Unavailable> for ControlRefusal {
    fn from(reason: Unavailable) -> Self {
        match reason {
            Unavailable::Busy => Self::new(503, "too many questions are under way"),
            Unavailable::Failed => Self::new(503, "the worker cannot ask the others now"),
        }
    }
}

/// A request to the listener.
#[derive(Debug)]
pub struct ControlCall {
    context: u32,
}

impl ControlCall {
    /// Creates a request whose headers have not arrived.
    pub fn new(context: u32) -> Self {
        Self { context }
    }

    fn receive(&self, worker: &mut Worker) -> Result<(), ControlRefusal> {
        let headers = worker.host.headers(Map::Request);
        let headers = headers.map_err(|_| Unavailable::Failed)?;
        let question = question(&headers)?;
        worker.ask(self.context, question)?;
        Ok(())
    }
}

/// The question of a request.
fn question(headers: &Headers) -> Result<Question, ControlRefusal> {
    // A value that is not text is neither a method nor a path of the listener.
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: FieldValue<'_>| value.text().ok())
    };
    let question = Question::parse(text(":path").unwrap_or_default());
    let question =
        question.map_err(|error| ControlRefusal::new(error.status, error.to_string()))?;
    match text(":method") {
        Some("GET") => Ok(question),
        _ => Err(ControlRefusal::new(405, "expected GET")),
    }
}

impl StreamContext for ControlCall {
    fn on_request_headers(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        _ends: bool,
    ) -> Action {
        let taken = match worker {
            Some(worker) => self.receive(worker),
            None => Err(Unavailable::Failed.into()),
        };
        if let Err(refusal) = taken {
            let details = "sluice_control_refused";
            let (status, allow) = (refusal.status, "GET");
            if answer_refusal(host, status, details, allow, &refusal.error).is_err() {
                let _ = host.reset(Half::Request);
            }
        }
        Action::Pause
    }

    fn on_request_body(
        &mut self,
        _: &dyn Host,
        _: Option<&mut Worker>,
        _size: usize,
        _ends: bool,
    ) -> Action {
        Action::Pause
    }

    fn on_done(&mut self, worker: Option<&mut Worker>) {
        if let Some(worker) = worker {
            worker.questions.pending.forget(self.context);
        }
    }
}
