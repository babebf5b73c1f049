// SPDX-License-Identifier: Apache-2.0
//! The origin's answers, and their path through ORIGIN to the cache filter.

use sluice_core::http::syntax::date;
use sluice_core::internal_headers::FAILURE_HEADER;
use sluice_host::Action;

use super::FakeEnvoy;
use super::requests::ETAG;
use crate::HeaderMap;
use crate::exchange::Side;
use crate::records::{Answer, Client, FetchId, FetchPhase, Stage};

/// Size of an object in bytes.
pub(super) const OBJECT_BYTES: usize = 1_024;

/// Header with the number of the fetch that has brought an object.
pub(super) const VERSION: &str = "x-version";

/// Events at the origin.
impl FakeEnvoy {
    /// Sends response headers. The origin has one version of the object.
    pub fn answer(&mut self, fetch: FetchId, answer: Answer) {
        let headers = &self.fetches[fetch.0].headers;
        let asked = headers.has("if-none-match");
        let control = format!(
            "max-age={}, stale-if-error=600{}",
            self.ttl, self.directives
        );
        let version = fetch.0.to_string();
        let stored = [("cache-control", control.as_str()), ("etag", ETAG)];
        let (control, tag) = (stored[0], stored[1]);
        let version = (VERSION, version.as_str());
        let ranges = ("accept-ranges", "bytes");
        match answer {
            Answer::Unchanged if asked => self.answer_with(fetch, 304, &stored, b""),
            Answer::Storable | Answer::Unchanged => {
                let headers = [control, tag, version, ranges];
                self.answer_with(fetch, 200, &headers, &object(fetch));
            }
            Answer::Uncacheable => {
                let private = [("cache-control", "private"), tag, version];
                self.answer_with(fetch, 200, &private, &object(fetch));
            }
            Answer::Silent => self.answer_with(fetch, 200, &[tag, version], &object(fetch)),
            Answer::Failed(status) => {
                let control = [("cache-control", "no-store")];
                self.answer_with(fetch, status, &control, b"an error");
            }
            Answer::Varying => {
                self.fetches[fetch.0].varies |= self.fetches[fetch.0].phase == FetchPhase::Sent;
                let varying = [control, tag, version, ("vary", "accept")];
                self.answer_with(fetch, 200, &varying, &object(fetch));
            }
        }
    }

    /// Sends these response headers, with the length of `body`.
    pub fn answer_with(
        &mut self,
        fetch: FetchId,
        status: u16,
        headers: &[(&str, &str)],
        body: &[u8],
    ) {
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_bytes()))
            .collect();
        self.answer_with_bytes(fetch, status, &headers, body);
    }

    /// Sends these response headers, with their own length, for a request for headers alone.
    pub fn answer_head(&mut self, fetch: FetchId, status: u16, headers: &[(&str, &str)]) {
        if self.fetches[fetch.0].phase != FetchPhase::Sent {
            return;
        }
        self.fetches[fetch.0].phase = FetchPhase::Body;
        let mut response = HeaderMap::of(&[(":status", &status.to_string())]);
        response.add("date", date::format(self.unix_seconds()));
        for (name, value) in headers {
            response.add(name, value);
        }
        let client = self.fetches[fetch.0].client;
        self.upstream_answers(client, response, Vec::new());
        self.run();
    }

    /// Sends these response headers, whose values may have any bytes.
    pub fn answer_with_bytes(
        &mut self,
        fetch: FetchId,
        status: u16,
        headers: &[(&str, &[u8])],
        body: &[u8],
    ) {
        if self.fetches[fetch.0].phase != FetchPhase::Sent {
            return;
        }
        self.fetches[fetch.0].phase = FetchPhase::Body;
        let mut response = HeaderMap::of(&[(":status", &status.to_string())]);
        if status != 304 {
            response.add("content-length", body.len().to_string());
        }
        response.add("date", date::format(self.unix_seconds()));
        for (name, value) in headers {
            response.add(name, value);
        }
        let client = self.fetches[fetch.0].client;
        self.upstream_answers(client, response, body.to_vec());
        self.run();
    }

    /// Sends one more byte of a body.
    pub fn progress(&mut self, fetch: FetchId) {
        if let Some(client) = self.sender(fetch) {
            self.upstream_sends(client, 1, false);
            self.run();
        }
    }

    /// Sends the rest of a body.
    pub fn end(&mut self, fetch: FetchId) {
        if let Some(client) = self.sender(fetch) {
            self.upstream_sends_rest(client);
            self.run();
        }
    }

    /// Breaks the connection to the origin. If the origin has not sent headers, Envoy answers instead.
    pub fn reset(&mut self, fetch: FetchId) {
        match self.fetches[fetch.0].phase {
            FetchPhase::Over => {}
            FetchPhase::Sent => self.answer_with(fetch, 503, &[(FAILURE_HEADER, "reset")], b""),
            FetchPhase::Body => {
                self.break_upstream(self.fetches[fetch.0].client);
                self.run();
            }
        }
    }

    fn sender(&self, fetch: FetchId) -> Option<Client> {
        let fetch = &self.fetches[fetch.0];
        (fetch.phase == FetchPhase::Body).then_some(fetch.client)
    }

    /// Returns the fetch of a request whose body is not complete yet.
    pub(super) fn fetch_of(&self, client: Client) -> Option<FetchId> {
        let fetch = self.exchanges[client.0].upstream.as_ref()?.fetch?;
        (self.fetches[fetch.0].phase == FetchPhase::Body).then_some(fetch)
    }

    /// Passes the headers of a response to ORIGIN. The headers are from the origin or from ORIGIN itself.
    pub(super) fn upstream_answers(&mut self, client: Client, headers: HeaderMap, body: Vec<u8>) {
        let upstream = self.exchanges[client.0].upstream.as_mut();
        let upstream = upstream.expect("a request to the origin");
        let ends = upstream.head || body.is_empty();
        (upstream.body, upstream.sent) = (body, 0);
        self.with_messages(client, Side::Origin, |messages| {
            messages.replied = false;
            messages.response = Some(headers);
        });
        let action = self.act(client, Side::Origin, |stream, host, worker| {
            stream.on_response_headers(host, worker, ends)
        });
        if action == Action::Pause {
            return;
        }
        let headers =
            self.with_messages(client, Side::Origin, |messages| messages.response.clone());
        if ends {
            self.end_fetch(client);
        }
        self.pass_headers(client, headers.flatten().unwrap_or_default(), ends);
        if ends {
            self.end_upstream(client);
        }
    }

    /// Passes the rest of the body to ORIGIN.
    pub(super) fn upstream_sends_rest(&mut self, client: Client) {
        let upstream = self.exchanges[client.0].upstream.as_ref();
        if let Some(upstream) = upstream.filter(|upstream| upstream.context.is_some()) {
            let left = upstream.body.len() - upstream.sent;
            self.upstream_sends(client, left, true);
        }
    }

    /// Passes the next part of the body to ORIGIN.
    ///
    /// # Panics
    /// ORIGIN lets the cache write to a client that has left, which would crash Envoy.
    fn upstream_sends(&mut self, client: Client, size: usize, ends: bool) {
        let upstream = self.exchanges[client.0].upstream.as_mut();
        let upstream = upstream.expect("a request to the origin");
        let most = upstream.body.len() - upstream.sent - usize::from(!ends);
        let size = size.min(most);
        let part = upstream.body[upstream.sent..upstream.sent + size].to_vec();
        upstream.sent += size;
        self.with_messages(client, Side::Origin, |messages| messages.body = part);
        let action = self.act(client, Side::Origin, |stream, host, worker| {
            stream.on_response_body(host, worker, size, ends)
        });
        if action == Action::Pause {
            return;
        }
        let part = self.with_messages(client, Side::Origin, |messages| {
            std::mem::take(&mut messages.body)
        });
        let part = part.unwrap_or_default();
        let over = self.is_over(client);
        let upstream = self.exchanges[client.0].upstream.as_mut();
        if let Some(filling) = upstream.and_then(|upstream| upstream.filling.as_mut()) {
            assert!(!over, "the cache writes into {client:?}, which has gone");
            filling.body.extend_from_slice(&part);
        }
        if ends {
            self.end_fetch(client);
            self.complete_fill(client);
        }
        self.deliver_body(client, part, ends);
        if ends {
            self.end_upstream(client);
        }
    }

    /// Records that the origin has sent the whole response.
    fn end_fetch(&mut self, client: Client) {
        let upstream = self.exchanges[client.0].upstream.as_ref();
        if let Some(fetch) = upstream.and_then(|upstream| upstream.fetch) {
            self.fetches[fetch.0].phase = FetchPhase::Over;
        }
    }

    /// Whether a client has its whole response while its own fill continues.
    pub fn has_its_304(&self, client: Client) -> bool {
        let Stage::Reading(fetch) = self.stage(client) else {
            return false;
        };
        let fetch = &self.fetches[fetch.0];
        self.clients[client.0].status() == 304 && fetch.client == client && fetch.fills
    }
}

/// Returns the object of a fetch. The object has the fetch's number at its beginning.
fn object(fetch: FetchId) -> Vec<u8> {
    let mut object = format!("{:>8}", fetch.0).into_bytes();
    object.resize(OBJECT_BYTES, b'.');
    object
}
