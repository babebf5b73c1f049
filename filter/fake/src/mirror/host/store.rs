// SPDX-License-Identifier: Apache-2.0
//! What a request meets at the store.

use sluice_core::coalescing::hints::Hint;
use sluice_core::coalescing::{Coalescer, LeaderResponse};
use sluice_core::link::Purpose;
use sluice_core::workers::Millis;

use super::FakeHost;
use crate::mirror::records::{Client, ClientRecord, Fetch, FetchId, FetchPhase, Kind, Stage};

/// The way from the filter to the origin.
impl FakeHost {
    pub(super) fn enter(&mut self, client: Client, purpose: Purpose) {
        let key = self.clients[client.0].key;
        self.clients[client.0].purpose = purpose;
        if purpose == Purpose::Bypass {
            self.fetch(client, false);
            return;
        }
        match self.store.look_up(key, self.now) {
            Some(until) => {
                self.clients[client.0].stage = Stage::Draining;
                self.readable(client, until);
            }
            None if self.keeps_unasked(client) => {
                self.clients[client.0].stage = Stage::Draining;
                self.keep_unwritten(client);
            }
            None => {
                let head = self.clients[client.0].kind == Kind::Head;
                self.fetch(client, !head);
                if matches!(purpose, Purpose::Fresh | Purpose::Collapsed) {
                    self.with_request(client, Coalescer::unexpected_miss);
                }
            }
        }
    }

    pub(super) fn fetch(&mut self, client: Client, fills: bool) {
        let ClientRecord {
            key, purpose, kind, ..
        } = self.clients[client.0];
        assert!(
            kind != Kind::Background || purpose == Purpose::Lead,
            "{client:?} goes to the origin for nobody"
        );
        let fetch = FetchId(self.fetches.len());
        self.fetches.push(Fetch {
            client,
            key,
            purpose,
            fills,
            phase: FetchPhase::Sent,
        });
        self.clients[client.0].stage = Stage::Fetching(fetch);
    }

    /// EDGE sees a response that whoever asks now gets too.
    pub(super) fn readable(&mut self, client: Client, until: Millis) {
        let ClientRecord {
            key,
            purpose,
            stage,
            ..
        } = self.clients[client.0];
        if matches!(stage, Stage::Over(_)) {
            return;
        }
        self.event(client, |coalescer, _, _| {
            coalescer.hints().set(key, Hint::Fresh, until)
        });
        if purpose == Purpose::Lead {
            self.respond(client, LeaderResponse::Readable { until });
        }
    }

    pub(super) fn respond(&mut self, client: Client, response: LeaderResponse) {
        self.event(client, |coalescer, stream, turn| {
            coalescer.response(stream, response, turn)
        });
    }

    pub(super) fn set_stage(&mut self, client: Client, stage: Stage) {
        if !matches!(self.stage(client), Stage::Over(_)) {
            self.clients[client.0].stage = stage;
        }
    }
}
