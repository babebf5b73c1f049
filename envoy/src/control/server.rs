// SPDX-License-Identifier: Apache-2.0
//! The control socket of a running edge.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;
use ureq::http::StatusCode;

use super::answers::{
    Decisions, EdgeReading, Explanation, Flights, Origins, RequestedUrls, SharedExplanation,
    WorkerDecisions, WorkerExplanation, WorkerFlights, WorkerOrigins, WorkerUrls,
};
use super::failure::ControlFailure;
use super::filter::{Filter, NoSharedPart};
use crate::cache::{Inventory, LoggedPurge, LoggedPurges, PurgeLog, UsageQuestion};
use crate::metrics::{MetricsDocument, epoch_millis};
use crate::net::local_socket::{self, Answer, Call, LocalSocket};
use crate::net::unix_client;

/// The fields of a question about a URL that stand for fields of a client's request.
const EXPLAINED: &str = "x-explain-";
/// The path of purges; all other paths are those of questions.
const PURGE: &str = "/v1/purge";
/// The questions, by their paths.
const QUESTIONS: [(&str, Answering); 8] = [
    ("/v1/flights", |server, _, _| server.flights()),
    ("/v1/urls", |server, query, _| server.urls(query)),
    ("/v1/decisions", |server, query, _| server.decisions(query)),
    ("/v1/origins", |server, _, _| server.origins()),
    ("/v1/sites", |server, _, _| server.sites()),
    ("/v1/explain", |server, query, call| {
        server.explain(query, call)
    }),
    ("/v1/du", |server, query, _| server.usage(query)),
    ("/v1/purges", |server, query, _| server.purges(query)),
];
/// The number of purges in an answer. The log of purges has about as many.
const MOST_PURGES: usize = 10_000;

/// The sources of the answers.
pub struct ControlServer {
    /// The filter.
    pub filter: Filter,
    /// The metrics.
    pub document: Arc<MetricsDocument>,
    /// The files of the cache.
    pub inventory: Inventory,
    /// The log of purges.
    pub purge_log: PurgeLog,
}

type Answered = Result<serde_json::Value, ControlFailure>;
/// A function that answers a question with this query.
type Answering = fn(&ControlServer, &str, &Call) -> Answered;

impl ControlServer {
    /// Answers the questions at `socket`, which only the user of the edge can open, until the result is dropped.
    ///
    /// # Errors
    /// The socket cannot be bound.
    pub fn serve(self, socket: PathBuf) -> io::Result<LocalSocket> {
        local_socket::serve_at("control", socket, move |call| self.answer(call))
    }

    fn answer(&self, call: &Call) -> Answer {
        let target = call.head.target.as_str();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let question = QUESTIONS.iter().find(|(known, _)| *known == path);
        let answered = match (call.head.method.as_str(), question) {
            ("POST", None) if path == PURGE => return self.purge(call),
            (_, None) if path == PURGE => Err(wrong_method("POST")),
            ("GET", Some((_, answer))) => answer(self, query, call),
            (_, Some(_)) => Err(wrong_method("GET")),
            (_, None) => Err(unknown_path(path)),
        };
        match answered {
            Ok(value) => (StatusCode::OK, value.to_string()),
            Err(failure) => failure.answer(),
        }
    }

    fn flights(&self) -> Answered {
        let answers = self
            .filter
            .ask::<WorkerFlights, NoSharedPart>("/flights", &[])?;
        json(Flights::join(answers))
    }

    fn urls(&self, query: &str) -> Answered {
        let target = format!("/urls?{query}");
        let answers = self.filter.ask::<WorkerUrls, NoSharedPart>(&target, &[])?;
        json(RequestedUrls::join(answers))
    }

    fn decisions(&self, query: &str) -> Answered {
        let target = format!("/decisions?{query}");
        let answers = self
            .filter
            .ask::<WorkerDecisions, NoSharedPart>(&target, &[])?;
        json(Decisions::join(answers))
    }

    fn origins(&self) -> Answered {
        let answers = self
            .filter
            .ask::<WorkerOrigins, NoSharedPart>("/origins", &[]);
        let answers = answers.map_err(|failure| failure.reason);
        let document = self
            .document
            .render()
            .map_err(|error| silent_envoy(&error))?;
        json(Origins::join(&document, answers))
    }

    fn sites(&self) -> Answered {
        let totals = self.document.totals();
        json(EdgeReading {
            state: self.document.status.report(),
            totals: totals.map_err(|error| silent_envoy(&error))?,
        })
    }

    fn explain(&self, query: &str, call: &Call) -> Answered {
        let target = format!("/explain?{query}");
        let fields = call.head.fields.iter();
        let fields = fields.filter(|(name, _)| name.starts_with(EXPLAINED));
        let fields: Vec<_> = fields.cloned().collect();
        let answers = self
            .filter
            .ask::<WorkerExplanation, SharedExplanation>(&target, &fields)?;
        let find = |key: &str| self.inventory.stored_of(key);
        let now_ms = epoch_millis(SystemTime::now());
        json(Explanation::join(answers, find, now_ms))
    }

    fn usage(&self, query: &str) -> Answered {
        let question = UsageQuestion::parse(query);
        let question =
            question.map_err(|reason| ControlFailure::new(StatusCode::BAD_REQUEST, reason))?;
        let contents = self.inventory.usage(&question);
        json(contents.map_err(|error| unreadable("the cache", &error))?)
    }

    fn purges(&self, query: &str) -> Answered {
        let purges = self.purge_log.read(MOST_PURGES);
        let LoggedPurges { purges } =
            purges.map_err(|error| unreadable("the log of purges", &error))?;
        let purges = match query {
            "query=1" => purges,
            _ => purges
                .into_iter()
                .map(LoggedPurge::without_queries)
                .collect(),
        };
        json(LoggedPurges { purges })
    }

    /// The answer of the purge listener, unchanged.
    fn purge(&self, call: &Call) -> Answer {
        let Ok(body) = str::from_utf8(&call.body) else {
            let reason = "the body: expected a JSON object";
            return ControlFailure::new(StatusCode::BAD_REQUEST, reason).answer();
        };
        let forwarded = unix_client::Call {
            method: "POST",
            body,
            ..unix_client::Call::get("/purge")
        };
        match self.filter.call(&forwarded) {
            Ok(reply) => (reply.status, reply.body),
            Err(failure) => failure.answer(),
        }
    }
}

fn json(value: impl Serialize) -> Answered {
    serde_json::to_value(value)
        .map_err(|error| ControlFailure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

fn silent_envoy(error: &io::Error) -> ControlFailure {
    ControlFailure::unavailable(format!("Envoy does not answer: {error}"))
}

fn unreadable(what: &str, error: &io::Error) -> ControlFailure {
    let reason = format!("{what} cannot be read: {error}");
    ControlFailure::new(StatusCode::INTERNAL_SERVER_ERROR, reason)
}

fn unknown_path(path: &str) -> ControlFailure {
    let paths = QUESTIONS.map(|(path, _)| path).join(", ");
    let reason = format!("{path}: expected {paths} or {PURGE}");
    ControlFailure::new(StatusCode::NOT_FOUND, reason)
}

fn wrong_method(expected: &str) -> ControlFailure {
    let reason = format!("expected {expected}");
    ControlFailure::new(StatusCode::METHOD_NOT_ALLOWED, reason)
}
