// SPDX-License-Identifier: Apache-2.0
//! A context that checks its host on demand, for tests of hosts (feature `conformance`). The shipped modules do not
//! have it.

use crate::callbacks::StreamContext;
use crate::worker::Worker;
use sluice_host::conformance::{
    FINDINGS, Findings, check_body, check_map, check_received, check_request, give_up, reply,
};
use sluice_host::{Action, Host, Map};

/// The checks that a request asks for, by its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// No checks.
    Nothing,
    /// The calls about the request, and about the reply with their findings.
    Reply,
    /// The calls about the response.
    Response,
}

/// A role, and the check of its host.
pub struct Conforming {
    role: Box<dyn StreamContext>,
    asked: Asked,
}

impl Conforming {
    /// Creates a role whose requests may ask for checks.
    pub fn new(role: Box<dyn StreamContext>) -> Self {
        Self {
            role,
            asked: Asked::Nothing,
        }
    }

    /// Adds the findings to a response header, after those of another role.
    fn tell(host: &dyn Host, found: &Findings) {
        let before = host.header(Map::Response, FINDINGS).ok().flatten();
        let before = before.map(|before| String::from_utf8_lossy(&before).into_owned());
        let line = before.map_or_else(|| found.line(), |before| [before, found.line()].join("; "));
        let told = host.set_header(Map::Response, FINDINGS, &line);
        if told.is_err() {
            give_up(host);
        }
    }

    fn answer(host: &dyn Host, asked: &[u8]) {
        let status = std::str::from_utf8(asked).ok();
        let status = status.and_then(|status| status.parse().ok());
        let mut found = check_request(host);
        found.add(check_map(host, Map::Request));
        found.add(check_received(host, Map::Request));
        if reply(host, status.unwrap_or(200), &found).is_err() {
            give_up(host);
        }
    }
}

impl StreamContext for Conforming {
    fn on_request_headers(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        ends: bool,
    ) -> Action {
        let asked = host.header(Map::Request, FINDINGS).ok().flatten();
        self.asked = match asked.as_deref() {
            None => Asked::Nothing,
            Some(b"response") => Asked::Response,
            Some(_) => Asked::Reply,
        };
        if let (Asked::Reply, Some(asked)) = (self.asked, asked) {
            Self::answer(host, &asked);
            return Action::Pause;
        }
        self.role.on_request_headers(host, worker, ends)
    }

    fn on_request_body(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        size: usize,
        ends: bool,
    ) -> Action {
        self.role.on_request_body(host, worker, size, ends)
    }

    fn on_request_trailers(&mut self, host: &dyn Host, worker: Option<&mut Worker>) -> Action {
        self.role.on_request_trailers(host, worker)
    }

    fn on_response_headers(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        ends: bool,
    ) -> Action {
        if self.asked == Asked::Nothing {
            return self.role.on_response_headers(host, worker, ends);
        }
        let mut found = check_map(host, Map::Response);
        found.add(check_received(host, Map::Response));
        let action = match self.asked {
            Asked::Reply => Action::Continue,
            _ => self.role.on_response_headers(host, worker, ends),
        };
        Self::tell(host, &found);
        let length = host.remove_header(Map::Response, "content-length");
        if length.is_err() {
            give_up(host);
        }
        action
    }

    fn on_response_body(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        size: usize,
        ends: bool,
    ) -> Action {
        let action = match self.asked {
            Asked::Reply => Action::Continue,
            _ => self.role.on_response_body(host, worker, size, ends),
        };
        let checked = self.asked != Asked::Nothing && action == Action::Continue;
        if checked && ends && check_body(host, size).is_err() {
            give_up(host);
        }
        action
    }

    fn on_response_trailers(&mut self, host: &dyn Host, worker: Option<&mut Worker>) -> Action {
        self.role.on_response_trailers(host, worker)
    }

    fn on_call_response(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        answered: bool,
        size: usize,
    ) {
        self.role.on_call_response(host, worker, answered, size);
    }

    fn on_log(&mut self, host: &dyn Host, worker: Option<&mut Worker>) {
        self.role.on_log(host, worker);
    }

    fn on_done(&mut self, worker: Option<&mut Worker>) {
        self.role.on_done(worker);
    }
}
