// SPDX-License-Identifier: Apache-2.0
//! The path of a request from EDGE through the cache filter to the origin.

use sluice_core::coalescing::StoreRequest;
use sluice_core::internal_headers::{PROOF_HEADER, SLICES_HEADER};
use sluice_host::Action;

use super::FakeEnvoy;
use crate::cache::{FakeCache, Stored};
use crate::exchange::{Context, Side, Upstream};
use crate::records::{Client, Fetch, FetchId, FetchPhase, Kind, Stage};
use crate::{HeaderMap, HeaderTexts as _};

/// Path of a request from EDGE to the origin.
impl FakeEnvoy {
    /// Passes a request to the cache filter.
    pub(super) fn enter_cache(&mut self, client: Client) {
        let request = self.with_messages(client, Side::Edge, |messages| messages.request.take());
        let request = request.flatten().expect("a request");
        if request.has(SLICES_HEADER) {
            return self.enter_slicer(client, &request);
        }
        let part = |name| request.get(name).unwrap_or_default();
        let method = part(":method");
        let mut upstream = Upstream {
            context: None,
            fetch: None,
            around: (request.has("if-range") && !self.ignores_if_range)
                || !matches!(method, "GET" | "HEAD"),
            get: method == "GET",
            key: [part(":authority"), part(":path")].concat(),
            validates: None,
            body: Vec::new(),
            sent: 0,
            head: false,
            filling: None,
        };
        let forced = part("cache-control").contains("no-cache");
        let stored = self.cache.look_up(&upstream.key).cloned();
        if let Some(stored) = stored.filter(|_| !upstream.around) {
            match FakeCache::age_if_fresh(&stored, self.unix_seconds()) {
                Ok(age) if !forced => return self.serve_hit(client, stored, age),
                _ => upstream.validates = Some(stored),
            }
        }
        self.enter_origin(client, request, upstream);
    }

    fn serve_hit(&mut self, client: Client, stored: Stored, age: i64) {
        let mut headers = stored.headers;
        headers.set("age", age.to_string());
        self.serve_stored(client, headers, stored.body);
    }

    /// Serves a stored body with these headers.
    fn serve_stored(&mut self, client: Client, headers: HeaderMap, body: Vec<u8>) {
        let ends = body.is_empty() || self.exchanges[client.0].head;
        self.deliver_headers(client, headers, ends);
        if !ends {
            self.deliver_body(client, body, true);
        }
    }

    /// Passes a request to ORIGIN, either from the cache filter or around it.
    fn enter_origin(&mut self, client: Client, mut request: HeaderMap, mut upstream: Upstream) {
        if let Some(stored) = &upstream.validates {
            for (name, of) in [
                ("if-none-match", "etag"),
                ("if-modified-since", "date"),
                ("if-modified-since", "last-modified"),
            ] {
                if let Some(value) = stored.headers.bytes(of) {
                    request.set(name, value);
                }
            }
        }
        let seat = self.clients[client.0].seat;
        let vm = self.vms[seat].as_mut().expect("a VM that lives");
        let number = vm.new_context();
        let root = vm.root("origin").expect("ORIGIN's root context");
        let stream = Some(root.root.stream_context(number));
        vm.host
            .with(number, |messages| messages.request = Some(request));
        upstream.context = Some(Context { number, stream });
        self.exchanges[client.0].upstream = Some(upstream);
        self.contexts.insert((seat, number), (client, Side::Origin));
        let action = self.act(client, Side::Origin, |stream, host, worker| {
            stream.on_request_headers(host, worker, true)
        });
        if action == Action::Continue {
            self.leave_origin(client);
        }
    }

    /// Sends the request from ORIGIN to the origin, through the native guard.
    fn leave_origin(&mut self, client: Client) {
        let headers = self.with_messages(client, Side::Origin, |messages| messages.request.take());
        let headers = headers.flatten().expect("a request");
        if !headers.has(PROOF_HEADER) {
            let headers = HeaderMap::of(&[(":status", "503"), ("content-length", "0")]);
            return self.upstream_answers(client, headers, Vec::new());
        }
        let record = &self.clients[client.0];
        assert!(
            record.kind != Kind::Background || record.request == Some(StoreRequest::Lead),
            "{client:?} is sent to the origin without a waiting client"
        );
        let id = FetchId(self.fetches.len());
        let request = record.request.unwrap_or(StoreRequest::Bypass);
        let key = record.key;
        let upstream = self.exchanges[client.0].upstream.as_mut();
        let upstream = upstream.expect("a request to the origin");
        upstream.fetch = Some(id);
        upstream.head = headers.get(":method") == Some("HEAD");
        let cache_key = upstream.key.clone();
        self.fetches.push(Fetch {
            client,
            key,
            cache_key,
            request,
            headers,
            fills: false,
            varies: false,
            phase: FetchPhase::Sent,
        });
        self.set_stage(client, Stage::Fetching(id));
    }

    /// Passes the headers of a response from ORIGIN to the cache filter.
    pub(super) fn pass_headers(&mut self, client: Client, headers: HeaderMap, ends: bool) {
        let upstream = self.exchanges[client.0].upstream.as_mut();
        let upstream = upstream.expect("a request to the origin");
        if upstream.around {
            return self.deliver_headers(client, headers, ends);
        }
        if headers.status() == 304
            && let Some(stored) = upstream.validates.clone()
        {
            return self.validated(client, headers, stored);
        }
        let key = upstream.key.clone();
        if upstream.get && FakeCache::takes(&headers) && self.cache.begin(&key) {
            upstream.filling = Some(Stored {
                headers: headers.clone(),
                body: Vec::new(),
            });
            if let Some(fetch) = upstream.fetch {
                self.fetches[fetch.0].fills = true;
            }
        }
        self.deliver_headers(client, headers, ends);
        if ends {
            self.complete_fill(client);
        }
    }

    /// Serves the stored response. The headers of the 304 replace its own.
    fn validated(&mut self, client: Client, mut headers: HeaderMap, stored: Stored) {
        let tag = stored.headers.bytes("etag");
        let updates = headers.bytes("etag").is_none_or(|told| Some(told) == tag);
        headers.set(":status", stored.headers.status().to_string());
        headers.remove("content-length");
        for (name, value) in stored.headers.iter() {
            if name != "age" && !headers.has(name) {
                headers.add(name, value);
            }
        }
        let upstream = self.exchanges[client.0].upstream.as_ref();
        if updates && let Some(upstream) = upstream {
            self.cache.update(&upstream.key, &headers);
        }
        self.serve_stored(client, headers, stored.body);
        // The body of the response to the validation is dropped.
        self.end_upstream(client);
    }

    /// Ends the fill of a response that the cache has received completely.
    pub(super) fn complete_fill(&mut self, client: Client) {
        let upstream = self.exchanges[client.0].upstream.as_mut();
        if let Some(upstream) = upstream
            && let Some(stored) = upstream.filling.take()
        {
            self.cache.end(&upstream.key, stored);
        }
    }

    pub(super) fn unix_seconds(&self) -> i64 {
        i64::try_from(self.process.unix_millis() / 1_000).unwrap_or(i64::MAX)
    }
}
