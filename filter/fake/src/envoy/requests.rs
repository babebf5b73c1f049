// SPDX-License-Identifier: Apache-2.0
//! Requests, from their arrival to the point where EDGE sends them on.

use sluice_core::coalescing::StoreRequest;
use sluice_core::workers::StreamId;
use sluice_host::Action;
use sluice_roles::callbacks::StreamContext;
use sluice_store::{LINK_HEADER, Vouched};

use super::FakeEnvoy;
use crate::exchange::{self, Context, Exchange, Side};
use crate::process::{Before, Call, Task};
use crate::records::{Client, ClientRecord, Ending, Kind, Stage};
use crate::{HeaderMap, HeaderTexts as _};

/// Entity tag of all objects.
pub(super) const ETAG: &str = "\"v1\"";

/// Size in bytes of the range that clients ask for.
pub(super) const RANGE_BYTES: usize = 10;

/// Events at clients.
impl FakeEnvoy {
    /// Sends a GET. Clients alternate between two values of `Accept`, which matters if a response varies.
    pub fn get(&mut self, seat: usize, key: u64) -> Client {
        self.arrive(seat, key, Kind::Get)
    }

    /// Sends a HEAD.
    pub fn head(&mut self, seat: usize, key: u64) -> Client {
        self.arrive(seat, key, Kind::Head)
    }

    /// Sends a GET for a range. It represents all requests that can follow but not lead.
    pub fn range(&mut self, seat: usize, key: u64) -> Client {
        self.arrive(seat, key, Kind::Range)
    }

    /// Sends a GET of a client that has the object.
    pub fn conditional(&mut self, seat: usize, key: u64) -> Client {
        self.arrive(seat, key, Kind::Conditional)
    }

    /// Sends a client's request. If the worker is dead, the client gets an error at once.
    pub fn arrive(&mut self, seat: usize, key: u64, kind: Kind) -> Client {
        let media_type = ["text/one", "text/other"][self.clients.len() % 2];
        let mut headers = exchange::request("GET", key, &[("accept", media_type)]);
        match kind {
            Kind::Head => headers.set(":method", "HEAD"),
            Kind::Range => headers.add("range", "bytes=0-9"),
            Kind::Conditional => headers.add("if-none-match", ETAG),
            _ => {}
        }
        self.ask(seat, kind, headers)
    }

    /// Sends a request with these headers, besides method and path.
    pub fn request(
        &mut self,
        seat: usize,
        method: &str,
        key: u64,
        headers: &[(&str, &str)],
    ) -> Client {
        self.ask(seat, Kind::Other, exchange::request(method, key, headers))
    }

    /// Sends a request with these headers, whose values may have any bytes.
    pub fn request_with_bytes(
        &mut self,
        seat: usize,
        method: &str,
        key: u64,
        headers: &[(&str, &[u8])],
    ) -> Client {
        let mut request = exchange::request(method, key, &[]);
        for (name, value) in headers {
            request.add(name, value);
        }
        self.ask(seat, Kind::Other, request)
    }

    /// Sends a GET past EDGE, as if Envoy let requests pass a VM that has died.
    pub fn get_past_edge(&mut self, seat: usize, key: u64) -> Client {
        struct Passing;
        impl StreamContext for Passing {}
        let headers = exchange::request("GET", key, &[]);
        let client = self.enlist(seat, Kind::Other, &headers, None);
        if self.open_context(client, "edge", headers) {
            let context = self.context(client, Side::Edge).expect("a context");
            context.stream = Some(Box::new(Passing));
            self.enter_cache(client);
            self.run();
        }
        client
    }

    fn ask(&mut self, seat: usize, kind: Kind, headers: HeaderMap) -> Client {
        let client = self.come(seat, kind, headers, None);
        self.run();
        client
    }

    /// Passes a request to EDGE. It may be a call of the filter.
    pub(super) fn come(
        &mut self,
        seat: usize,
        kind: Kind,
        headers: HeaderMap,
        call: Option<&Call>,
    ) -> Client {
        let client = self.enlist(seat, kind, &headers, call);
        self.enter(client, headers, true);
        client
    }

    /// Passes the headers of a request to EDGE. If `ends`, the request has no body.
    pub(super) fn enter(&mut self, client: Client, headers: HeaderMap, ends: bool) {
        if self.open_context(client, "edge", headers) {
            self.receive(client, ends);
        }
    }

    /// Passes the headers of a request to its context of EDGE. If `ends`, the request has no body.
    pub(super) fn receive(&mut self, client: Client, ends: bool) {
        let action = self.act(client, Side::Edge, |stream, host, worker| {
            stream.on_request_headers(host, worker, ends)
        });
        self.note_key(client);
        match action {
            Action::Continue => {
                let before = self.process.before.borrow().clone();
                self.process.push(Task::Proceed(client, before));
            }
            Action::Pause if self.is_replied(client) => {}
            Action::Pause => self.set_stage(client, Stage::Parked),
        }
    }

    /// Sends a request that does not end with its headers.
    pub fn open_ended(
        &mut self,
        seat: usize,
        method: &str,
        key: u64,
        headers: &[(&str, &str)],
    ) -> Client {
        let headers = exchange::request(method, key, headers);
        let client = self.enlist(seat, Kind::Other, &headers, None);
        self.enter(client, headers, false);
        self.run();
        client
    }

    /// Passes a part of a request's body to EDGE, which has `size` bytes of the body then.
    pub fn send_body(&mut self, client: Client, size: usize, ends: bool) {
        if self.is_over(client) {
            return;
        }
        let action = self.act(client, Side::Edge, |stream, host, worker| {
            stream.on_request_body(host, worker, size, ends)
        });
        self.continue_after(client, action);
    }

    /// Ends a request with trailers.
    pub fn send_trailers(&mut self, client: Client) {
        let action = self.act(client, Side::Edge, |stream, host, worker| {
            stream.on_request_trailers(host, worker)
        });
        self.continue_after(client, action);
    }

    /// Sends the held headers on if EDGE lets a later part pass, as Envoy does.
    fn continue_after(&mut self, client: Client, action: Action) {
        if action == Action::Continue && self.stage(client) == Stage::Parked {
            let before = self.process.before.borrow().clone();
            self.proceed(client, &before);
        }
        self.run();
    }

    /// Sends a request without a body back to EDGE through the background listener, as the hop does.
    fn come_back(&mut self, outer: Client) {
        let headers = self.with_messages(outer, Side::Edge, |messages| messages.request.take());
        let headers = headers.flatten().expect("a request");
        assert_eq!(headers.get("content-length"), Some("0"), "for the codec");
        let client = self.enlist(self.clients[outer.0].seat, Kind::Other, &headers, None);
        self.exchanges[client.0].outer = Some(outer);
        self.enter(client, headers, true);
    }

    /// Adds a record of a request.
    pub(super) fn enlist(
        &mut self,
        seat: usize,
        kind: Kind,
        headers: &HeaderMap,
        call: Option<&Call>,
    ) -> Client {
        let client = Client(self.clients.len());
        self.clients.push(ClientRecord {
            seat,
            key: number_in(headers.get(":path").unwrap_or_default()),
            kind,
            accept: headers.get("accept").map(str::to_owned),
            admission: None,
            release: None,
            request: None,
            stage: Stage::Over(Ending::Failed(503)),
            response: None,
        });
        self.exchanges.push(Exchange {
            edge: None,
            upstream: None,
            head: headers.get(":method") == Some("HEAD"),
            call: call.map(|call| (call.number, call.context, call.deadline)),
            outer: None,
            slicing: None,
            slice: None,
            held: None,
            responded: false,
        });
        client
    }

    /// Creates the request's context in the role of the root context `root`. False if the worker is dead.
    pub(super) fn open_context(&mut self, client: Client, root: &str, headers: HeaderMap) -> bool {
        let address = self.address.clone();
        let exchange = &self.exchanges[client.0];
        let own = exchange.call.is_some() || exchange.outer.is_some() || exchange.slice.is_some();
        let seat = self.clients[client.0].seat;
        let route = if own { "sluice_background" } else { "" };
        let room = if self.full { "+no_room" } else { "" };
        let route = [route, room].concat();
        let connection = self.connection;
        let Some(vm) = &mut self.vms[seat] else {
            return false;
        };
        let number = vm.new_context();
        let root = vm.root(root).expect("a root context");
        let stream = Some(root.root.stream_context(number));
        vm.host.with(number, |messages| {
            messages.request = Some(headers);
            let name = "xds\0route_name".to_owned();
            messages.properties.insert(name, route.into_bytes());
            if let Some(connection) = connection {
                let name = "connection\0id".to_owned();
                messages
                    .properties
                    .insert(name, connection.to_le_bytes().into());
            }
            if !own {
                let name = "source\0address".to_owned();
                messages.properties.insert(name, address.into_bytes());
            }
        });
        self.exchanges[client.0].edge = Some(Context { number, stream });
        self.contexts.insert((seat, number), (client, Side::Edge));
        self.clients[client.0].stage = Stage::Going;
        true
    }

    /// Whether EDGE has answered the request, and Envoy has not sent the answer yet.
    pub(super) fn is_replied(&mut self, client: Client) -> bool {
        let number = self
            .context(client, Side::Edge)
            .map(|context| context.number);
        let vm = self.vms[self.clients[client.0].seat].as_ref();
        match (vm, number) {
            (Some(vm), Some(number)) => vm.host.with(number, |messages| messages.replied),
            _ => false,
        }
    }

    /// Resumes a paused request.
    pub(super) fn resume_request(&mut self, client: Client, before: &Before) {
        assert_eq!(
            self.stage(client),
            Stage::Parked,
            "{client:?} was resumed, but is not paused"
        );
        let release = self
            .stream_id(client)
            .and_then(|id| {
                self.worker(self.clients[client.0].seat)?
                    .coalescing
                    .requests
                    .get(id)
            })
            .and_then(|stream| stream.progress.next_step.get());
        self.clients[client.0].release = release;
        self.proceed(client, before);
    }

    /// Sends a request from EDGE to the cache.
    pub(super) fn proceed(&mut self, client: Client, before: &Before) {
        let stage = self.stage(client);
        if !matches!(stage, Stage::Going | Stage::Parked) {
            return;
        }
        self.note_key(client);
        let request = self.store_request_of(client);
        let record = &mut self.clients[client.0];
        record.request = request;
        if stage == Stage::Going {
            record.admission = request;
        }
        record.stage = Stage::Going;
        if request == Some(StoreRequest::Lead) {
            self.check_lead(client, before);
        }
        if request == Some(StoreRequest::Empty) {
            self.come_back(client);
        } else if Self::is_for_slicer(request) {
            let request =
                self.with_messages(client, Side::Edge, |messages| messages.request.take());
            self.enter_slicer(client, request.flatten().expect("a request"));
        } else if self.hold_lookups {
            self.unsought.push_back(client);
        } else {
            self.enter_cache(client);
        }
    }

    /// Passes the requests that were held to the cache filter.
    pub fn look_up(&mut self) {
        while let Some(client) = self.unsought.pop_front() {
            if !self.is_over(client) {
                self.enter_cache(client);
                self.run();
            }
        }
    }

    /// Returns the purpose that EDGE has written into the request's link.
    fn store_request_of(&mut self, client: Client) -> Option<StoreRequest> {
        let number = self.context(client, Side::Edge)?.number;
        let vm = self.vms[self.clients[client.0].seat].as_ref()?;
        let link = vm.host.with(number, |messages| {
            let request = messages.request.as_ref()?;
            Some(request.get(LINK_HEADER)?.to_owned())
        })?;
        match vm
            .worker
            .as_ref()?
            .identity
            .vouching
            .decode(link.as_bytes())?
            .vouched
        {
            Vouched::Here(link) => Some(link.request),
            Vouched::Elsewhere(request) => Some(request),
        }
    }

    /// Returns the worker's number for a request that is not over.
    pub(super) fn stream_id(&self, client: Client) -> Option<StreamId> {
        let edge = self.exchanges[client.0].edge.as_ref()?;
        Some(StreamId(edge.number))
    }

    /// Disconnects a client whose response has not ended.
    pub fn abort(&mut self, client: Client) {
        if !self.is_over(client) {
            self.close_as(client, Ending::Left);
            self.run();
        }
    }

    /// Ends a request whose client has its whole response.
    pub fn close(&mut self, client: Client) {
        if self.stage(client) == Stage::Draining {
            self.end_served(client);
            self.run();
        }
    }

    /// Ends all requests whose responses have ended.
    pub fn close_all(&mut self) {
        for client in self.open_clients() {
            self.close(client);
        }
    }
}

/// Returns the number at the beginning of a path.
fn number_in(path: &str) -> u64 {
    let digits = path.trim_start_matches('/');
    let end = digits.find(|next: char| !next.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())].parse().unwrap_or(0)
}
