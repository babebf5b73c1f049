// SPDX-License-Identifier: Apache-2.0
//! The control listener, by which the entry point asks the workers on behalf of the edge's operator. It listens on a
//! Unix socket that only the edge's user can open, so it asks for no token.

mod answers;
mod inquiry;
mod turn;

use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::inspection::{Question, QuestionError};
use sluice_core::purge::Caller;

use crate::callbacks::StreamContext;
use crate::edge::request::explanation::Explanation;
use crate::purge_audit;
use crate::purge_listener;
use crate::reply::refusal::answer_refusal;
use crate::worker::Worker;
use crate::worker::purges::purge_calls::Unavailable;
use sluice_host::headers::Headers;
use sluice_host::{Action, Host, Map};

use answers::explain;
use inquiry::ask_origin;
pub use turn::go_on;

/// Beginning of the names of headers that belong to the request to be explained.
const EXPLAINED_PREFIX: &str = "x-explain-";

/// The refusal of a request.
struct ControlRefusal {
    status: u16,
    error: String,
    /// The methods of the path.
    allow: &'static str,
}

impl ControlRefusal {
    fn new(status: u16, error: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
            allow: "GET",
        }
    }

    fn send(&self, host: &dyn Host) {
        let details = "sluice_control_refused";
        answer_refusal(host, self.status, details, self.allow, &self.error);
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
    /// Whether it is a purge whose document is on its way.
    purges: bool,
}

impl ControlCall {
    /// Creates a request whose headers have not arrived.
    pub fn new(context: u32) -> Self {
        Self {
            context,
            purges: false,
        }
    }

    fn receive(&mut self, worker: &mut Worker, ends: bool) -> Result<(), ControlRefusal> {
        let headers = worker.host.headers(Map::Request);
        let headers = headers.map_err(|_| Unavailable::Failed)?;
        // A value that is not text is neither a method nor a path of the listener.
        let text = |name| {
            headers
                .get(name)
                .and_then(|value: FieldValue<'_>| value.text().ok())
        };
        let (method, path) = (text(":method").unwrap_or_default(), text(":path"));
        let path = path.unwrap_or_default();
        if path == "/purge" {
            check_purge(method)?;
            purge_audit::tell_caller(&*worker.host, &worker.metrics, "control socket");
            self.purges = !ends;
            return match ends {
                true => self.purge(worker, &[]),
                false => Ok(()),
            };
        }
        let question = Question::parse(path);
        let refuse = |error: QuestionError| ControlRefusal::new(error.status, error.to_string());
        let question = question.map_err(refuse)?;
        if method != "GET" {
            return Err(ControlRefusal::new(405, "expected GET"));
        }
        self.ask(worker, add_headers(question, &headers))
    }

    /// Asks all workers, and adds the part of the answer that they share.
    fn ask(&self, worker: &mut Worker, question: Question) -> Result<(), ControlRefusal> {
        let request = match &question {
            Question::Explain(request) => Some(request.clone()),
            _ => None,
        };
        let (keys, roots) = (&mut worker.keys, &mut worker.roots);
        let (host, metrics) = (&*worker.host, &worker.metrics);
        let call = worker
            .questions
            .ask(host, metrics, keys, roots, self.context, question)?;
        if let Some(request) = request {
            let headers = explain::headers(&request);
            let explanation = Explanation::of(
                &worker.policies,
                &worker.identity,
                &mut worker.keys,
                &mut worker.slices,
                &mut worker.coalescing,
                &headers,
            );
            let decision = explain::decision(&worker.identity, explanation.as_ref());
            worker.questions.pending.share(call, "decision", &decision);
            if request.online {
                ask_origin(
                    &mut worker.calls,
                    &mut worker.questions,
                    call,
                    explanation,
                    &headers,
                );
            }
        }
        Ok(())
    }

    /// Carries out a purge as the listener for purges does for the edge's token.
    fn purge(&self, worker: &mut Worker, document: &[u8]) -> Result<(), ControlRefusal> {
        let order = purge_listener::sites(&worker.policies).and_then(|generation| {
            let caller = Caller::of_edge(&generation.sites, &worker.identity.store_secret);
            purge_listener::read_order(&*worker.host, &worker.metrics, caller, document)
        });
        let (keys, roots) = (&mut worker.keys, &mut worker.roots);
        let purged = order.and_then(|order| {
            // The operator's command has its own way to write the feed.
            let purge_calls = &mut worker.purge_calls;
            let purged = purge_calls.purge(keys, roots, self.context, &order, None);
            purged.map_err(purge_listener::unavailable)
        });
        purged.map_err(|refusal| {
            worker.metrics.count(refusal.metric, 1);
            ControlRefusal::new(refusal.status, refusal.error)
        })
    }

    /// Takes the next step of the request, which is never forwarded: it is answered, now or later.
    fn proceed(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        step: impl FnOnce(&mut Self, &mut Worker) -> Result<(), ControlRefusal>,
    ) -> Action {
        let taken = match worker {
            Some(worker) => step(self, worker),
            None => Err(Unavailable::Failed.into()),
        };
        if let Err(refusal) = taken {
            self.purges = false;
            refusal.send(host);
        }
        Action::Pause
    }
}

/// Refuses a purge with another method than POST.
fn check_purge(method: &str) -> Result<(), ControlRefusal> {
    match method {
        "POST" => Ok(()),
        _ => Err(ControlRefusal {
            allow: "POST",
            ..ControlRefusal::new(405, "expected POST")
        }),
    }
}

/// Adds the headers of the request to be explained. Their names have a prefix, so that no listener changes them.
fn add_headers(mut question: Question, headers: &Headers) -> Question {
    if let Question::Explain(request) = &mut question {
        let lines = headers.iter().filter_map(|(name, value)| {
            let name = name.strip_prefix(EXPLAINED_PREFIX)?;
            let value = String::from_utf8(value.to_vec()).ok()?;
            Some((name.to_owned(), value))
        });
        request.headers.extend(lines);
    }
    question
}

impl StreamContext for ControlCall {
    fn on_request_headers(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        ends: bool,
    ) -> Action {
        self.proceed(host, worker, |call, worker| call.receive(worker, ends))
    }

    fn on_request_body(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        size: usize,
        ends: bool,
    ) -> Action {
        if !ends || !std::mem::take(&mut self.purges) {
            return Action::Pause;
        }
        let document = host.request_body(size).unwrap_or_default();
        self.proceed(host, worker, |call, worker| call.purge(worker, &document))
    }

    fn on_done(&mut self, worker: Option<&mut Worker>) {
        if let Some(worker) = worker {
            worker.questions.pending.forget(self.context);
            worker.purge_calls.forget(self.context);
        }
    }
}
