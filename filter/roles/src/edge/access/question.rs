// SPDX-License-Identifier: Apache-2.0
//! A question whether the client of a request may read the site: to Envoy's verifier of tokens, or to a server. The
//! request waits for the answer.

use std::time::Duration;

use sluice_core::access::decision::AccessRefusal;
use sluice_core::access::token::PresentedToken;
use sluice_core::host::HostError;
use sluice_core::http::caching::cache_name::CDN_LOOP;
use sluice_core::key::Rejection;
use sluice_core::key::client_url::ClientUrl;
use sluice_core::metrics::Metric;
use sluice_core::policy::{AccessPolicy, Policy};

use super::answer::{CheckerAnswer, Verdict};
use super::asker::Asker;
use super::{TakenCredentials, client_address, verification};
use crate::edge::{Edge, Refusal, State};
use crate::request::account::{tell_access, tell_access_user};
use crate::request::headers::Header;
use crate::worker::Worker;
use crate::worker::access_calls::AccessCall;
use sluice_host::headers::{Headers, extend, serialize};
use sluice_host::{Action, Half, Host, Map};

/// The part of Envoy, or the server, that a question is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checker {
    /// Envoy's verifier of tokens.
    Tokens,
    /// The server of the scheme forward.
    Server,
}

impl Checker {
    /// The counter of its questions without an answer.
    const fn failures(self) -> Metric {
        match self {
            Self::Tokens => Metric::AccessTokenFailures,
            Self::Server => Metric::AccessForwardFailures,
        }
    }
}

/// A question that waits for its answer.
#[derive(Debug)]
pub(in crate::edge) struct Question {
    /// The client's headers as they were sent.
    sent: Headers,
    taken: TakenCredentials,
    /// Whether the request ends with its headers.
    ends: bool,
    /// Whether a part of the body has arrived meanwhile.
    has_body: bool,
    /// Whether the end of the body has arrived meanwhile.
    has_ended: bool,
    /// The reason for which the other schemes refuse the request.
    refusal: AccessRefusal,
    checker: Checker,
    /// Whether an earlier question has had no answer, so that the request may not be refused for good.
    is_in_doubt: bool,
    /// The count of the question.
    call: Option<AccessCall>,
}

impl Question {
    /// Notes that a part of the body has arrived, with or without bytes.
    pub const fn note_body(&mut self, bytes: bool, ends: bool) {
        self.has_body |= bytes;
        self.has_ended |= ends;
    }

    /// The client's headers without credentials.
    fn headers(&self) -> &Headers {
        self.taken.headers.as_ref().unwrap_or(&self.sent)
    }
}

/// The call of a question.
struct QuestionCall {
    cluster: String,
    fields: Vec<Header>,
    timeout: Duration,
}

impl Edge {
    /// Asks about a client's request with these headers, which EDGE alone does not admit: first
    /// the verifier of tokens if the request has a token, else the server of the scheme forward.
    pub(in crate::edge) fn ask(
        &mut self,
        host: &dyn Host,
        worker: Option<&mut Worker>,
        sent: &Headers,
        taken: TakenCredentials,
        ends: bool,
        refusal: AccessRefusal,
    ) -> Result<Action, Refusal> {
        let Some(worker) = worker else {
            return Err(Refusal::Rejected(Rejection::AccessUnknown));
        };
        let checker = match taken.token {
            PresentedToken::Present(_) => Checker::Tokens,
            PresentedToken::Absent | PresentedToken::Malformed => Checker::Server,
        };
        let question = Question {
            sent: sent.clone(),
            taken,
            ends,
            has_body: false,
            has_ended: false,
            refusal,
            checker,
            is_in_doubt: false,
            call: None,
        };
        self.put(host, worker, question)
    }

    /// Sends the call of a question. The request waits.
    fn put(
        &mut self,
        host: &dyn Host,
        worker: &mut Worker,
        mut question: Question,
    ) -> Result<Action, Refusal> {
        let policy = self.policy.policy.clone();
        let call = match (&policy.access, question.checker) {
            (Some(access), Checker::Tokens) => {
                verification_call(access, &policy.site.name, &question.taken.token)
            }
            (Some(access), Checker::Server) => {
                self.server_call(host, &policy, access, &question)?
            }
            (None, _) => None,
        };
        question.call = worker.access_calls.begin().filter(|_| {
            let made = call.map(|call| call.send(host));
            made.is_some_and(|made| made.is_ok())
        });
        if question.call.is_none() {
            return Err(self.lack_answer(worker, question.checker));
        }
        self.state = State::Asking(Box::new(question));
        Ok(Action::Pause)
    }

    /// The call to the server of the scheme forward; `None` if the site has none.
    fn server_call(
        &self,
        host: &dyn Host,
        policy: &Policy,
        access: &AccessPolicy,
        question: &Question,
    ) -> Result<Option<QuestionCall>, Refusal> {
        let Some(forward) = access.forward() else {
            return Ok(None);
        };
        let headers = question.headers();
        if headers.has(CDN_LOOP) && self.has_come_back(headers) {
            return Err(Refusal::Rejected(Rejection::Loop));
        }
        let target = headers.target();
        let url = ClientUrl::of(policy, &target).map_err(Refusal::Rejected)?;
        let client = Asker {
            access,
            forward,
            url: &url,
            target: &target,
            is_secure: self.is_secure,
        };
        let address = client_address(host).map(|ip| ip.to_string());
        let mut fields = client.fields(&question.sent, address);
        let own = self.identity.name.cdn_loop();
        fields.push((CDN_LOOP.to_owned(), own.into_bytes()));
        Ok(Some(QuestionCall {
            cluster: forward.cluster(&policy.site.name),
            fields,
            timeout: forward.timeout,
        }))
    }

    /// The refusal of a request about which a checker has given no answer.
    fn lack_answer(&self, worker: &Worker, checker: Checker) -> Refusal {
        worker.metrics.count_of(&self.policy, checker.failures());
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
        let received = match question.checker {
            Checker::Tokens => self.go_on_after_tokens(host, worker, *question, answered),
            Checker::Server => self.go_on_after_server(host, worker, *question, answered, size),
        };
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

    fn go_on_after_tokens(
        &mut self,
        host: &dyn Host,
        worker: &mut Worker,
        mut question: Question,
        answered: bool,
    ) -> Result<Action, Refusal> {
        let policy = self.policy.policy.clone();
        let Some(access) = &policy.access else {
            return Err(self.lack_answer(worker, Checker::Tokens));
        };
        let answer = answered.then(|| host.headers(Map::CallResponse));
        let answer = answer.transpose()?;
        let verdict = answer
            .zip(access.jwt())
            .map_or(Verdict::Unknown, |(answer, jwt)| {
                verification::verdict(jwt, &answer)
            });
        let has_server = access.forward().is_some();
        let has_user = policy.response.account;
        match verdict {
            Verdict::Admitted => {
                worker.metrics.count_of(&self.policy, Metric::AccessByToken);
                if let Some(user) = question.taken.token.subject().filter(|_| has_user) {
                    tell_access_user(host, &user)?;
                }
                self.continue_with(host, worker, &question, question.headers())
            }
            Verdict::Unknown | Verdict::Refused if has_server => {
                question.checker = Checker::Server;
                question.is_in_doubt = verdict == Verdict::Unknown;
                if verdict == Verdict::Refused {
                    question.refusal = AccessRefusal::WrongToken;
                }
                // The former call is over.
                question.call = None;
                self.put(host, worker, question)
            }
            Verdict::Unknown => Err(self.lack_answer(worker, Checker::Tokens)),
            Verdict::Refused => {
                let metric = Metric::AccessRefusedByToken;
                worker.metrics.count_of(&self.policy, metric);
                if policy.response.account {
                    tell_access(host, AccessRefusal::WrongToken.name())?;
                }
                Err(Refusal::Rejected(Rejection::InvalidToken))
            }
        }
    }

    fn go_on_after_server(
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
            false => return Err(self.lack_answer(worker, Checker::Server)),
        };
        match Verdict::of(&answer, size) {
            Verdict::Unknown => Err(self.lack_answer(worker, Checker::Server)),
            Verdict::Refused if question.is_in_doubt => {
                Err(self.lack_answer(worker, Checker::Tokens))
            }
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
                let headers = self.take_over(host, &policy, &answer, question.headers())?;
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

impl QuestionCall {
    fn send(&self, host: &dyn Host) -> Result<u32, HostError> {
        let fields = self.fields.iter();
        let fields = fields.map(|(name, value)| (name.as_str(), value.as_slice()));
        let fields: Vec<_> = fields.collect();
        host.call(&self.cluster, &fields, None, self.timeout)
    }
}

/// The call to the verifier of tokens of a site; `None` if the site has none, or the request has no token.
fn verification_call(
    access: &AccessPolicy,
    site: &str,
    token: &PresentedToken,
) -> Option<QuestionCall> {
    let cluster = access.jwt()?.cluster(site)?;
    Some(QuestionCall {
        fields: verification::question(&cluster, token)?,
        cluster,
        timeout: verification::TIMEOUT,
    })
}
