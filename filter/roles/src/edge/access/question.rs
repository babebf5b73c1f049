// SPDX-License-Identifier: Apache-2.0
//! A question to a server whether the client of a request may read the site. The request waits for the answer.

use sluice_core::access::credentials::SignedCookies;
use sluice_core::access::decision::AccessRefusal;
use sluice_core::host::HostError;
use sluice_core::http::caching::cache_name::CDN_LOOP;
use sluice_core::internal_headers::CLIENT_HEADER;
use sluice_core::key::client_url::ClientUrl;
use sluice_core::key::{Rejection, Target};
use sluice_core::metrics::Metric;
use sluice_core::policy::{ForwardPolicy, Policy};

use super::answer::{CheckerAnswer, Verdict};
use super::{TakenCredentials, client_address};
use crate::edge::{Edge, Refusal, State};
use crate::request::account::{tell_access, tell_access_user};
use crate::request::headers::Header;
use crate::worker::Worker;
use crate::worker::access_calls::AccessCall;
use sluice_host::headers::{Headers, extend, serialize};
use sluice_host::{Action, Half, Host, Map};

/// Headers of the client that each server gets.
const ALWAYS_SENT: [&str; 3] = ["accept", "authorization", "user-agent"];

/// A question that waits for its answer.
#[derive(Debug)]
pub(in crate::edge) struct Question {
    /// The client's headers without credentials.
    headers: Headers,
    taken: TakenCredentials,
    /// Whether the request ends with its headers.
    ends: bool,
    /// Whether a part of the body has arrived meanwhile.
    has_body: bool,
    /// Whether the end of the body has arrived meanwhile.
    has_ended: bool,
    /// The reason for which the other schemes refuse the request.
    refusal: AccessRefusal,
    /// The count of the question.
    _call: AccessCall,
}

impl Question {
    /// Notes that a part of the body has arrived, with or without bytes.
    pub const fn note_body(&mut self, bytes: bool, ends: bool) {
        self.has_body |= bytes;
        self.has_ended |= ends;
    }
}

impl Edge {
    /// Asks the server of the scheme forward about a client's request with these headers, which no other scheme admits.
    pub(in crate::edge) fn ask(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        sent: &Headers,
        taken: TakenCredentials,
        ends: bool,
        refusal: AccessRefusal,
    ) -> Result<Action, Refusal> {
        let headers = taken.headers.as_ref().unwrap_or(sent).clone();
        if headers.has(CDN_LOOP) && self.has_come_back(&headers) {
            return Err(Refusal::Rejected(Rejection::Loop));
        }
        let policy = &self.policy.policy;
        let forward = policy.access.as_ref().and_then(|access| access.forward());
        let (Some(worker), Some(forward)) = (worker, forward) else {
            return Err(Refusal::Rejected(Rejection::AccessUnknown));
        };
        let target = headers.target();
        let url = ClientUrl::of(policy, &target).map_err(Refusal::Rejected)?;
        let client = Asker {
            forward,
            url: &url,
            target: &target,
            is_secure: self.is_secure,
        };
        let mut fields = client.fields(sent, client_address(host).map(|ip| ip.to_string()));
        let own = self.identity.name.cdn_loop();
        fields.push((CDN_LOOP.to_owned(), own.into_bytes()));
        let fields = fields.iter();
        let fields = fields.map(|(name, value)| (name.as_str(), value.as_slice()));
        let fields: Vec<_> = fields.collect();
        let cluster = forward.cluster(&policy.site.name);
        let call = worker.access_calls.begin().filter(|_| {
            let made = host.call(&cluster, &fields, None, forward.timeout);
            made.is_ok()
        });
        let Some(call) = call else {
            return Err(self.lack_answer(worker));
        };
        self.state = State::Asking(Box::new(Question {
            headers,
            taken,
            ends,
            has_body: false,
            has_ended: false,
            refusal,
            _call: call,
        }));
        Ok(Action::Pause)
    }

    /// The refusal of a request about which no server has given an answer.
    fn lack_answer(&self, worker: &Worker) -> Refusal {
        worker
            .metrics
            .count_of(&self.policy, Metric::AccessForwardFailures);
        Refusal::Rejected(Rejection::AccessUnknown)
    }

    /// Handles the answer to the question, whose body has `size` bytes. `answered` is false if the call failed.
    pub(in crate::edge) fn hear_checker(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        answered: bool,
        size: usize,
    ) {
        let state = match &self.state {
            State::Asking(_) => std::mem::replace(&mut self.state, State::Unchanged),
            _ => return,
        };
        let (State::Asking(question), Some(worker)) = (state, worker) else {
            return self.refuse(host, &Refusal::Rejected(Rejection::AccessUnknown));
        };
        let received = self.go_on_after(host, worker, *question, answered, size);
        self.note_received(worker, &received);
        match received {
            Ok(Action::Pause) => {}
            Ok(Action::Continue) => {
                let resumed = host
                    .act_as(self.id.0)
                    .and_then(|()| host.resume(Half::Request));
                worker.metrics.check(resumed);
            }
            Err(refusal) => {
                worker.metrics.check(host.act_as(self.id.0));
                self.refuse(host, &refusal);
            }
        }
    }

    fn go_on_after(
        &mut self,
        host: &dyn Host,
        worker: &mut Worker,
        question: Question,
        answered: bool,
        size: usize,
    ) -> Result<Action, Refusal> {
        let policy = self.policy.policy.clone();
        let answer = match answered {
            true => host.headers(Map::CallResponse)?,
            false => return Err(self.lack_answer(worker)),
        };
        match Verdict::of(&answer, size) {
            Verdict::Unknown => Err(self.lack_answer(worker)),
            Verdict::Refused => {
                let metric = Metric::AccessRefusedByForward;
                worker.metrics.count_of(&self.policy, metric);
                if policy.response.account {
                    tell_access(host, question.refusal.name())?;
                }
                let body = host.call_body(size)?;
                Err(Refusal::Checker(Box::new(CheckerAnswer::new(
                    &answer, body,
                ))))
            }
            Verdict::Admitted => {
                worker
                    .metrics
                    .count_of(&self.policy, Metric::AccessByForward);
                let headers = self.take_over(host, &policy, &answer, &question.headers)?;
                self.continue_with(host, worker, &question, &headers)
            }
        }
    }

    /// Takes over the headers of an answer that admits the request: cookies for the client, and headers for the origin.
    /// Returns the headers of the request with those.
    fn take_over(
        &mut self,
        host: &dyn Host,
        policy: &Policy,
        answer: &Headers,
        headers: &Headers,
    ) -> Result<Headers, HostError> {
        let lines = |wanted: &str| {
            let wanted = wanted.as_bytes().to_vec();
            let lines = answer.fields().filter(move |(name, _)| *name == wanted);
            lines.map(|(_, value)| value)
        };
        self.client_cookies = lines("set-cookie").map(<[u8]>::to_vec).collect();
        let access = policy.access.as_ref();
        let copied = access.map_or(&[][..], |access| access.copied_headers());
        let copied: Vec<_> = copied
            .iter()
            .flat_map(|name| lines(name).map(move |value| (name.as_str(), value)))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        for (name, value) in &copied {
            host.add_header(Map::Request, name, value)?;
        }
        let user = copied.iter().find(|(name, _)| name.ends_with("user"));
        if let Some((_, user)) = user.filter(|_| policy.response.account) {
            tell_access_user(host, &String::from_utf8_lossy(user))?;
        }
        let kept = headers.iter();
        Ok(Headers::new(extend(&serialize(kept), copied.into_iter())))
    }

    /// Handles an admitted request like one whose headers have just arrived.
    fn continue_with(
        &mut self,
        host: &dyn Host,
        worker: &mut Worker,
        question: &Question,
        headers: &Headers,
    ) -> Result<Action, Refusal> {
        let (taken, ends) = (&question.taken, question.ends);
        let received = self.receive_admitted(host, Some(worker), headers, taken, ends)?;
        match self.awaits_body && (question.has_body || question.has_ended) {
            true => Ok(self.take_body(host, Some(worker), question.has_body, question.has_ended)),
            false => Ok(received),
        }
    }
}

/// The facts about a client's request that a server gets.
struct Asker<'a> {
    forward: &'a ForwardPolicy,
    url: &'a ClientUrl,
    target: &'a Target<'a>,
    is_secure: bool,
}

impl Asker<'_> {
    /// The headers of the question about a request that was `sent` with these headers.
    fn fields(&self, sent: &Headers, address: Option<String>) -> Vec<Header> {
        let url = &self.forward.url;
        let path = match self.forward.append {
            true => [url.path.trim_end_matches('/'), self.url.as_str()].concat(),
            false => url.path.clone(),
        };
        let method = sent.get(":method").map(|method| method.bytes().to_vec());
        let method = method.unwrap_or_default();
        let scheme = if self.is_secure { "https" } else { "http" };
        let host = self.target.authority;
        let uri = self.url.as_str().as_bytes();
        let original = [scheme.as_bytes(), b"://", host, uri].concat();
        let mut fields = vec![
            (":method", b"GET".to_vec()),
            (":scheme", scheme.as_bytes().to_vec()),
            (":authority", url.authority.clone().into_bytes()),
            (":path", path.into_bytes()),
            ("x-forwarded-method", method.clone()),
            ("x-original-method", method),
            ("x-forwarded-proto", scheme.as_bytes().to_vec()),
            ("x-forwarded-host", host.to_vec()),
            ("x-forwarded-uri", uri.to_vec()),
            ("x-original-url", original),
        ];
        if let Some(address) = address {
            // The server's cluster makes X-Forwarded-For from this header.
            fields.push((CLIENT_HEADER, address.into_bytes()));
        }
        let listed = self.forward.headers.iter().map(String::as_str);
        let names = ALWAYS_SENT.into_iter().chain(listed);
        let lines = names.flat_map(|wanted| {
            let lines = sent.iter().filter(move |(name, _)| *name == wanted);
            lines.map(move |(_, value)| (wanted, value.to_vec()))
        });
        fields.extend(lines);
        let cookies = sent.fields().filter(|(name, _)| *name == b"cookie");
        let cookies: Vec<_> = cookies.map(|(_, value)| value).collect();
        let signed = SignedCookies::of(cookies.iter().copied(), &|_| false);
        let rest = signed.map_or_else(|| cookies.join(&b"; "[..]), |signed| signed.rest);
        if !rest.is_empty() {
            fields.push(("cookie", rest));
        }
        let owned = fields.into_iter();
        owned
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}
