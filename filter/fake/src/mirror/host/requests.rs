// SPDX-License-Identifier: Apache-2.0
//! Requests, as EDGE and the worker treat them.

use sluice_core::coalescing::Admission;
use sluice_core::link::Purpose;
use sluice_core::workers::{KeyHash, StreamId};

use super::FakeHost;
use super::variants::variant;
use crate::mirror::records::{
    Client, ClientRecord, Ending, Fetch, FetchId, FetchPhase, Kind, Stage,
};

/// What clients do.
impl FakeHost {
    /// A GET comes.
    pub fn get(&mut self, seat: usize, key: u64) -> Client {
        self.arrive(seat, key, Kind::Get)
    }

    /// A HEAD comes. It stands for all that waits for others and cannot lead.
    pub fn head(&mut self, seat: usize, key: u64) -> Client {
        self.arrive(seat, key, Kind::Head)
    }

    /// A GET comes whose client has the object.
    pub fn conditional(&mut self, seat: usize, key: u64) -> Client {
        self.arrive(seat, key, Kind::Conditional { led_for: false })
    }

    /// A request comes. A worker that is dead answers by itself.
    pub fn arrive(&mut self, seat: usize, key: u64, kind: Kind) -> Client {
        let client = self.come(seat, KeyHash(key), kind);
        self.run();
        client
    }

    pub(super) fn come(&mut self, seat: usize, key: KeyHash, kind: Kind) -> Client {
        let client = Client(self.clients.len());
        self.clients.push(ClientRecord {
            seat,
            key,
            kind,
            admission: Admission::Alone,
            release: None,
            purpose: Purpose::Alone,
            stage: Stage::Over(Ending::Failed(503)),
        });
        if self.seats[seat].varying.contains(&key) {
            self.clients[client.0].key = variant(key, client);
        }
        self.admit(client);
        client
    }

    pub(super) fn admit(&mut self, client: Client) {
        let is_led_for = self.is_led_for(client);
        let admission = self.with_request(client, |coalescer, request, turn| {
            let mut request = request.clone();
            request.may_lead &= !is_led_for;
            coalescer.request(&request, turn)
        });
        let Some(admission) = admission else {
            return;
        };
        if is_led_for && admission == Admission::Alone {
            self.lead_in_background(client);
            return;
        }
        self.clients[client.0].admission = admission;
        let leads = matches!(admission, Admission::Lead | Admission::Park);
        if self.clients[client.0].kind == Kind::Background && !leads {
            self.end_unneeded(client);
            return;
        }
        match admission {
            Admission::Park => self.clients[client.0].stage = Stage::Parked,
            Admission::Fresh => self.enter(client, Purpose::Fresh),
            Admission::HitForMiss => self.enter(client, Purpose::Bypass),
            Admission::Alone => self.enter(client, Purpose::Alone),
            Admission::Lead => {
                self.check_lead(client);
                self.enter(client, Purpose::Lead);
            }
        }
    }

    pub(super) fn is_led_for(&self, client: Client) -> bool {
        self.clients[client.0].kind == Kind::Conditional { led_for: false }
    }

    /// A fill in the background leads for a request, which takes part then.
    pub(super) fn lead_in_background(&mut self, client: Client) {
        let ClientRecord { seat, key, .. } = self.clients[client.0];
        self.clients[client.0].kind = Kind::Conditional { led_for: true };
        self.clients[client.0].release = None;
        if !self.calls_fail {
            self.come(seat, key, Kind::Background);
        }
        self.admit(client);
    }

    /// There is no need for a fill in the background.
    pub(super) fn end_unneeded(&mut self, fill: Client) {
        self.clients[fill.0].stage = Stage::Over(Ending::Unneeded);
        self.closed(fill);
    }

    /// Those who wait on its worker for a fill in the background have their 304 with its headers.
    pub(super) fn answer_followers(&mut self, fill: Client) {
        let ClientRecord {
            seat, key, kind, ..
        } = self.clients[fill.0];
        if kind != Kind::Background {
            return;
        }
        let (clients, now) = (self.clients.clone(), self.now);
        let asks = |stream: StreamId| {
            let client = clients.get(stream.0 as usize)?;
            matches!(client.kind, Kind::Conditional { .. }).then_some(())
        };
        let answered = self
            .coalescer(seat)
            .map(|coalescer| coalescer.answer_waiting(key, now, asks));
        for (stream, ..) in answered.unwrap_or_default() {
            let follower = self.unpark(stream);
            self.set_stage(follower, Stage::Over(Ending::Served));
        }
    }

    /// The store has no room for the response, of which those who wait for it on its worker get a copy.
    pub fn share_copy(&mut self, fetch: FetchId) {
        let Fetch { client, key, .. } = self.fetches[fetch.0];
        let (seat, now) = (self.clients[client.0].seat, self.now);
        let answered = self
            .coalescer(seat)
            .map(|coalescer| coalescer.answer_waiting(key, now, Some));
        for (stream, ..) in answered.unwrap_or_default() {
            let follower = self.unpark(stream);
            self.set_stage(follower, Stage::Over(Ending::Served));
        }
        self.event(client, |coalescer, stream, turn| {
            coalescer.fill_copied(stream, turn);
        });
        self.fetches[fetch.0].phase = FetchPhase::Body { until: None };
        self.set_stage(client, Stage::Reading(fetch));
        self.run();
    }

    /// Whether a client has its whole answer while its own fill goes on.
    pub fn has_its_304(&self, client: Client) -> bool {
        let asks = matches!(self.clients[client.0].kind, Kind::Conditional { .. });
        let Stage::Reading(fetch) = self.stage(client) else {
            return false;
        };
        let Fetch {
            client: owner,
            phase,
            ..
        } = self.fetches[fetch.0];
        let fills = matches!(phase, FetchPhase::Body { until: Some(_) });
        asks && owner == client && fills
    }

    /// A client leaves before its response has ended.
    pub fn abort(&mut self, client: Client) {
        if matches!(self.stage(client), Stage::Over(_)) {
            return;
        }
        let filling = match self.stage(client) {
            Stage::Reading(fetch) => Some(fetch),
            _ => None,
        };
        let rescued = self.has_its_304(client);
        self.detach(client);
        self.closed(client);
        if let Some(fetch) = filling {
            self.guard(client, fetch);
        }
        self.run();
        if rescued {
            let ClientRecord { seat, key, .. } = self.clients[client.0];
            self.come(seat, key, Kind::Background);
            self.run();
        }
    }

    /// ORIGIN ends a fill whose client has gone when more of the body comes, at the latest.
    pub(super) fn guard(&mut self, client: Client, fetch: FetchId) {
        let Fetch {
            client: owner,
            phase,
            ..
        } = self.fetches[fetch.0];
        let told = self.aborts.contains(&client);
        if owner == client && phase != FetchPhase::Over && !told {
            self.cancel(fetch);
        }
    }

    /// Fills are aborted as the coalescers have asked, and they are told.
    pub fn carry_out_aborts(&mut self) {
        while let Some(client) = self.aborts.pop_front() {
            let open = |fetch: &Fetch| fetch.client == client && fetch.phase != FetchPhase::Over;
            if let Some(fetch) = self.fetches.iter().rposition(open) {
                self.cancel(FetchId(fetch));
            }
            self.event(client, |coalescer, stream, turn| {
                coalescer.fill_broken(stream, turn)
            });
        }
        self.run();
    }

    /// Envoy refuses to abort, or does not tell.
    pub fn lose_aborts(&mut self) {
        self.aborts.clear();
    }

    /// A client has its whole response.
    pub fn close(&mut self, client: Client) {
        if self.stage(client) == Stage::Draining {
            self.clients[client.0].stage = Stage::Over(Ending::Served);
            self.closed(client);
            self.run();
        }
    }

    /// All whose responses have ended are done.
    pub fn close_all(&mut self) {
        for client in self.open_clients() {
            self.close(client);
        }
    }

    /// Ends the request and, before the response headers, its fetch.
    pub(super) fn detach(&mut self, client: Client) {
        let stage = self.stage(client);
        self.clients[client.0].stage = Stage::Over(Ending::Left);
        if let Stage::Fetching(fetch) = stage
            && self.fetches[fetch.0].phase == FetchPhase::Sent
        {
            self.cancel(fetch);
        }
    }

    pub(super) fn cancel(&mut self, fetch: FetchId) {
        self.fetches[fetch.0].phase = FetchPhase::Over;
    }

    pub(super) fn closed(&mut self, client: Client) {
        self.event(client, |coalescer, stream, turn| {
            coalescer.closed(stream, turn)
        });
    }
}
