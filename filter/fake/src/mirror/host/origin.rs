// SPDX-License-Identifier: Apache-2.0
//! What the origin answers, as ORIGIN treats it.

use sluice_core::coalescing::{FillVerdict, LeaderResponse};
use sluice_core::key::vary::VaryNames;
use sluice_core::link::Purpose;
use sluice_core::workers::Millis;

use super::FakeHost;
use crate::mirror::records::{
    Answer, Client, Ending, Fetch, FetchId, FetchPhase, HIT_FOR_MISS, STALE_IF_ERROR, Stage,
};

/// What the origin does.
impl FakeHost {
    /// Response headers come.
    pub fn answer(&mut self, fetch: FetchId, answer: Answer) {
        let Fetch {
            client,
            key,
            purpose,
            phase,
            ..
        } = self.fetches[fetch.0];
        if phase != FetchPhase::Sent {
            return;
        }
        if answer == Answer::Kept && self.keep(fetch) {
            return;
        }
        let (until, shunned) = (self.now + self.ttl, self.now + HIT_FOR_MISS);
        let around = purpose == Purpose::Bypass;
        let verdict = match answer {
            Answer::Storable => FillVerdict::Store,
            Answer::Uncacheable => FillVerdict::HitForMiss { until: shunned },
            Answer::NoRoom => FillVerdict::NoRoom,
            Answer::Failed(status) => FillVerdict::Failed { status },
            Answer::Kept => FillVerdict::Failed { status: 503 },
            Answer::Varying => {
                let seat = self.clients[client.0].seat;
                self.seats[seat].varying.insert(key);
                let names = VaryNames::parse("accept");
                FillVerdict::Varies { names }
            }
        };
        self.event(client, |coalescer, stream, turn| {
            coalescer.fill_headers(stream, verdict, turn)
        });
        self.fetches[fetch.0].phase = FetchPhase::Body { until: None };
        self.set_stage(client, Stage::Reading(fetch));
        if answer == Answer::Storable && !around {
            if self.fetches[fetch.0].fills {
                self.fetches[fetch.0].phase = FetchPhase::Body { until: Some(until) };
            }
            self.respond(client, LeaderResponse::Filling);
            self.answer_followers(client);
        }
        self.run();
    }

    /// The store is told to serve what it has in the place of an error. False if it has nothing.
    pub(super) fn keep(&mut self, fetch: FetchId) -> bool {
        let Fetch {
            client, key, fills, ..
        } = self.fetches[fetch.0];
        if !fills || !self.store.has(key) {
            return false;
        }
        self.fetches[fetch.0].phase = FetchPhase::Over;
        self.keep_unwritten(client);
        self.event(client, |coalescer, _, _| {
            coalescer.hints().set_failing(key, true)
        });
        self.run();
        true
    }

    /// The store serves what it has as it is.
    pub(super) fn keep_unwritten(&mut self, client: Client) {
        let until = self.now + STALE_IF_ERROR;
        self.event(client, |coalescer, stream, turn| {
            coalescer.fill_kept(stream, until, turn)
        });
        self.set_stage(client, Stage::Draining);
        self.respond(client, LeaderResponse::Filling);
    }

    /// Whether the origin has just failed, and is not asked for what the store has.
    pub(super) fn keeps_unasked(&mut self, client: Client) -> bool {
        let key = self.clients[client.0].key;
        let now = self.now;
        let seat = self.clients[client.0].seat;
        let kept = self.store.has(key);
        let coalescer = self.coalescer(seat).filter(|_| kept);
        coalescer.is_some_and(|coalescer| coalescer.hints().is_failing(key, now))
    }

    /// More of a body comes.
    pub fn progress(&mut self, fetch: FetchId) {
        let Fetch { client, phase, .. } = self.fetches[fetch.0];
        if matches!(phase, FetchPhase::Body { .. }) {
            self.event(client, |coalescer, stream, turn| {
                coalescer.fill_progress(stream, turn.now);
            });
        }
    }

    /// A body ends.
    pub fn end(&mut self, fetch: FetchId) {
        let Fetch { client, phase, .. } = self.fetches[fetch.0];
        match phase {
            FetchPhase::Body { until: Some(until) } => self.complete(fetch, until),
            FetchPhase::Body { until: None } => self.fetches[fetch.0].phase = FetchPhase::Over,
            _ => return,
        }
        self.event(client, |coalescer, stream, turn| {
            coalescer.fill_ended(stream, turn)
        });
        if self.fetches[fetch.0].phase == FetchPhase::Over {
            for reader in self.readers(fetch) {
                self.set_stage(reader, Stage::Draining);
            }
        }
        self.run();
    }

    /// The store has all of it.
    pub(super) fn complete(&mut self, fetch: FetchId, until: Millis) {
        self.fetches[fetch.0].phase = FetchPhase::Over;
        self.store.end(self.fetches[fetch.0].key, until);
    }

    /// The connection to the origin breaks.
    pub fn reset(&mut self, fetch: FetchId) {
        let Fetch { client, phase, .. } = self.fetches[fetch.0];
        self.fetches[fetch.0].phase = FetchPhase::Over;
        match phase {
            FetchPhase::Over => {}
            FetchPhase::Sent => {
                self.event(client, |coalescer, stream, turn| {
                    coalescer.fill_broken(stream, turn)
                });
                self.set_stage(client, Stage::Draining);
                self.respond(client, LeaderResponse::Failed { status: 503 });
            }
            FetchPhase::Body { .. } => {
                self.event(client, |coalescer, stream, turn| {
                    coalescer.fill_broken(stream, turn)
                });
                for reader in self.readers(fetch) {
                    self.set_stage(reader, Stage::Over(Ending::Truncated));
                    self.closed(reader);
                }
            }
        }
        self.run();
    }

    pub(super) fn readers(&self, fetch: FetchId) -> Vec<Client> {
        let reads = |client: &Client| self.stage(*client) == Stage::Reading(fetch);
        (0..self.clients.len()).map(Client).filter(reads).collect()
    }
}
