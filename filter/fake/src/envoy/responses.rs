// SPDX-License-Identifier: Apache-2.0
//! Responses on their path through EDGE to the client, and the ends of requests.

use sluice_host::Action;

use super::FakeEnvoy;
use crate::HeaderMap;
use crate::exchange::{Exchange, Held, Side};
use crate::process::LocalReply;
use crate::records::{Client, Ending, FetchPhase, Kind, Response, Stage};
use crate::worker_host::Messages;

/// Responses and ends of requests.
impl FakeEnvoy {
    /// Calls `with` on the messages of a request's context, while the context exists.
    pub(super) fn with_messages<R>(
        &mut self,
        client: Client,
        side: Side,
        with: impl FnOnce(&mut Messages) -> R,
    ) -> Option<R> {
        let number = self.context(client, side)?.number;
        let vm = self.vms[self.clients[client.0].seat].as_ref()?;
        Some(vm.host.with(number, with))
    }

    /// Passes the headers of the response to EDGE.
    pub(super) fn deliver_headers(&mut self, client: Client, headers: HeaderMap, ends: bool) {
        if self.is_over(client) {
            return;
        }
        self.with_messages(client, Side::Edge, |messages| {
            messages.response = Some(headers);
        });
        let action = self.act(client, Side::Edge, |stream, host, worker| {
            stream.on_response_headers(host, worker, ends)
        });
        match action {
            Action::Continue => self.publish_headers(client, ends),
            Action::Pause if self.is_replied(client) => {}
            Action::Pause => {
                let held = Held {
                    ended: ends,
                    body: None,
                };
                self.exchanges[client.0].held = Some(held);
                self.set_stage(client, Stage::Held);
            }
        }
    }

    /// Passes the headers of the response to the client.
    fn publish_headers(&mut self, client: Client, ends: bool) {
        let headers = self.with_messages(client, Side::Edge, |messages| messages.response.clone());
        let headers = headers.flatten().unwrap_or_default();
        self.exchanges[client.0].responded = true;
        self.clients[client.0].response = Some(Response {
            headers,
            body: Vec::new(),
        });
        self.slice_answers(client);
        if ends {
            self.end_response(client);
        } else if let Some(fetch) = self.fetch_of(client) {
            self.set_stage(client, Stage::Reading(fetch));
        }
    }

    /// Passes a part of the response's body to EDGE, together with the part that is kept. Envoy does so even if EDGE
    /// holds the response at its headers (`allow_on_headers_stop_iteration`).
    pub(super) fn deliver_body(&mut self, client: Client, part: Vec<u8>, ends: bool) {
        if self.is_over(client) || self.is_replied(client) {
            return;
        }
        let holds = self.exchanges[client.0].held.is_some();
        let size = self.with_messages(client, Side::Edge, |messages| {
            if !holds {
                messages.body.clear();
            }
            messages.body.extend(part);
            messages.body.len()
        });
        let size = size.unwrap_or_default();
        let action = self.act(client, Side::Edge, |stream, host, worker| {
            stream.on_response_body(host, worker, size, ends)
        });
        if action == Action::Pause {
            if let Some(held) = &mut self.exchanges[client.0].held {
                held.body = Some(ends);
            }
            return;
        }
        if self.exchanges[client.0].held.take().is_some() {
            self.publish_headers(client, false);
        }
        self.publish_body(client, ends);
    }

    /// Passes the part of the body that EDGE has let pass to the client.
    fn publish_body(&mut self, client: Client, ends: bool) {
        let part = self.with_messages(client, Side::Edge, |messages| {
            std::mem::take(&mut messages.body)
        });
        let part = part.unwrap_or_default();
        self.slice_sends(client, &part);
        if let Some(response) = &mut self.clients[client.0].response {
            response.body.extend(part);
        }
        if ends {
            self.end_response(client);
        }
    }

    /// Records that the whole response is on its way to the client.
    fn end_response(&mut self, client: Client) {
        if self.exchanges[client.0].head
            && let Some(response) = &mut self.clients[client.0].response
        {
            // The codec sends no body in response to a HEAD.
            response.body.clear();
        }
        self.set_stage(client, Stage::Draining);
        if self.clients[client.0].kind.is_own() || self.exchanges[client.0].outer.is_some() {
            self.end_served(client);
        }
    }

    /// Resumes a response that EDGE holds.
    pub(super) fn resume_response(&mut self, client: Client) {
        let Some(held) = self.exchanges[client.0].held.take() else {
            panic!("the response of {client:?} was resumed, but is not paused");
        };
        // Envoy would lose the kept part of a body that is resumed before its end.
        assert_ne!(held.body, Some(false), "{client:?}: resumed amid its body");
        self.publish_headers(client, held.ended);
        if let Some(ends) = held.body {
            self.publish_body(client, ends);
        }
    }

    /// Passes a local reply of the filter to the client.
    pub(super) fn reply(&mut self, client: Client, reply: LocalReply) {
        if self.exchanges[client.0].responded {
            return self.truncate(client);
        }
        let holds = self.exchanges[client.0].held.take().is_some();
        self.detach(client);
        let ends = reply.body.is_empty() || self.exchanges[client.0].head;
        self.with_messages(client, Side::Edge, |messages| {
            messages.replied = false;
            messages.response = Some(reply.headers);
        });
        if holds {
            return self.publish_reply(client, reply.body);
        }
        let action = self.act(client, Side::Edge, |stream, host, worker| {
            stream.on_response_headers(host, worker, ends)
        });
        assert_eq!(action, Action::Continue, "{client:?}: a reply is paused");
        self.publish_headers(client, false);
        if !ends {
            self.deliver_body(client, reply.body, true);
        }
        self.end_served(client);
    }

    /// Passes a local reply to the client instead of a held response. The reply does not pass the filters.
    fn publish_reply(&mut self, client: Client, body: Vec<u8>) {
        self.publish_headers(client, false);
        if !self.exchanges[client.0].head {
            self.with_messages(client, Side::Edge, |messages| messages.body = body);
            self.publish_body(client, true);
        }
        self.end_served(client);
    }

    /// Ends a request that has its whole response.
    pub(super) fn end_served(&mut self, client: Client) {
        self.check_response(client);
        let record = &self.clients[client.0];
        let ending = match record.status() {
            204 if record.kind == Kind::Background && record.request.is_none() => Ending::Unneeded,
            status if status >= 500 => Ending::Failed(status),
            _ => Ending::Served,
        };
        self.close_as(client, ending);
    }

    /// Breaks the stream before its response or within it.
    pub(super) fn truncate(&mut self, client: Client) {
        self.close_as(client, Ending::Truncated);
    }

    /// Ends a request. The context of EDGE ends first, because Envoy ends the filters of a stream in their order.
    pub(super) fn close_as(&mut self, client: Client, ending: Ending) {
        if self.is_over(client) {
            return;
        }
        self.clients[client.0].stage = Stage::Over(ending);
        self.exchanges[client.0].held = None;
        self.end_context(client, Side::Edge);
        self.detach(client);
        self.answer_own(client, ending);
        self.end_slices(client, ending);
        self.close_pair(client);
    }

    /// Ends the request that this request was sent back from, or sent back as.
    fn close_pair(&mut self, client: Client) {
        if let Some(outer) = self.exchanges[client.0].outer {
            match self.clients[client.0].response.clone() {
                Some(response) => {
                    self.deliver_headers(outer, response.headers, false);
                    self.deliver_body(outer, response.body, true);
                }
                None => self.truncate(outer),
            }
        }
        let inner = |exchange: &Exchange| exchange.outer == Some(client);
        if let Some(inner) = self.exchanges.iter().position(inner) {
            self.close_as(Client(inner), Ending::Left);
        }
    }

    /// Ends the request to the origin if its client does not need it any more. A fill continues, because Envoy's
    /// cache continues it, and would write to the client that has left.
    fn detach(&mut self, client: Client) {
        let upstream = self.exchanges[client.0].upstream.as_ref();
        let fills = upstream.is_some_and(|upstream| upstream.filling.is_some());
        if !fills {
            self.end_upstream(client);
        }
    }

    /// Ends the request to the origin for any reason.
    pub(super) fn end_upstream(&mut self, client: Client) {
        let Some(upstream) = &mut self.exchanges[client.0].upstream else {
            return;
        };
        if upstream.filling.take().is_some() {
            self.cache.abandon(&upstream.key);
        }
        if let Some(fetch) = upstream.fetch {
            self.fetches[fetch.0].phase = FetchPhase::Over;
        }
        self.end_context(client, Side::Origin);
    }

    /// Breaks the request to the origin, and with it the response.
    pub(super) fn break_upstream(&mut self, client: Client) {
        self.end_upstream(client);
        if self.is_over(client) || self.is_replied(client) {
            return;
        }
        if self.exchanges[client.0].responded {
            return self.truncate(client);
        }
        let headers = HeaderMap::of(&[(":status", "503"), ("content-length", "0")]);
        let body = Vec::new();
        self.reply(client, LocalReply { headers, body });
    }
}
