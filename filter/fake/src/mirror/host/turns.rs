// SPDX-License-Identifier: Apache-2.0
//! Events of the coalescers, and their effects.

use std::rc::Rc;

use sluice_core::coalescing::board::FlightKey;
use sluice_core::coalescing::{Coalescer, Effect, Release, Request, Turn};
use sluice_core::link::Purpose;
use sluice_core::workers::StreamId;
use sluice_core::workers::message::Message;

use super::FakeHost;
use crate::mirror::records::{Client, ClientRecord, Ending, Kind, Stage};

/// Events and effects.
impl FakeHost {
    pub(super) fn with_request<R>(
        &mut self,
        client: Client,
        call: impl FnOnce(&mut Coalescer, &Request<'_>, &mut Turn<'_>) -> R,
    ) -> Option<R> {
        let ClientRecord {
            seat, key, kind, ..
        } = self.clients[client.0];
        let (target, policy) = (Rc::clone(&self.target), self.policy);
        let stream = stream_of(client);
        let may_lead = kind != Kind::Head;
        let request = Request {
            stream,
            key: FlightKey { entry: key, key },
            target: &target,
            may_lead,
            for_others: kind == Kind::Background,
            policy,
        };
        self.turn(seat, |coalescer, turn| call(coalescer, &request, turn))
    }

    pub(super) fn event(
        &mut self,
        client: Client,
        call: impl FnOnce(&mut Coalescer, StreamId, &mut Turn<'_>),
    ) {
        let seat = self.clients[client.0].seat;
        // A client of a former VM is unknown to this one: its number is not in use again.
        self.turn(seat, |coalescer, turn| {
            call(coalescer, stream_of(client), turn)
        });
    }

    pub(super) fn turn<R>(
        &mut self,
        seat: usize,
        event: impl FnOnce(&mut Coalescer, &mut Turn<'_>) -> R,
    ) -> Option<R> {
        let (leases, faulty) = (self.leases(), self.data.is_faulty());
        let worker = self.worker(seat)?;
        (self.leases_before, self.faulty_before) = (leases, faulty);
        let coalescer = self.seats.get_mut(seat)?.coalescer.as_mut()?;
        let mut effects = Vec::new();
        let mut turn = Turn {
            store: &self.data,
            now: self.now,
            effects: &mut effects,
        };
        let result = event(coalescer, &mut turn);
        for effect in effects {
            self.effects.push((worker, effect.clone()));
            self.carry_out(seat, effect);
        }
        Some(result)
    }

    pub(super) fn carry_out(&mut self, seat: usize, effect: Effect) {
        match effect {
            Effect::Count(metric, amount) => *self.counters.entry(metric).or_insert(0) += amount,
            Effect::Notify { worker, message } => {
                self.queues
                    .entry(worker)
                    .or_default()
                    .push_back(Message::Flight(message).encode());
            }
            Effect::Abort { stream } => self.aborts.push_back(Client(stream.0 as usize)),
            Effect::Probe { key, .. } => self.seats[seat].probes.push_back(key),
            Effect::Resume {
                stream, release, ..
            } => {
                let client = self.unpark(stream);
                self.clients[client.0].release = Some(release);
                self.clients[client.0].stage = Stage::Resumed(release);
                if release == Release::Lead {
                    self.check_lead(client);
                }
                self.resumed.push_back(client);
            }
            // All keys here have one target, so a worker learns as its requests are released.
            Effect::Learn { .. } => {}
            Effect::Fail { stream, status, .. } => {
                let client = self.unpark(stream);
                self.clients[client.0].stage = Stage::Over(Ending::Failed(status));
            }
        }
    }

    pub(super) fn unpark(&self, stream: StreamId) -> Client {
        let client = Client(stream.0 as usize);
        let stage = self.stage(client);
        assert_eq!(
            stage,
            Stage::Parked,
            "{client:?} was released, but is not parked"
        );
        client
    }

    /// Envoy goes on with resumed requests when the filter has returned.
    pub(super) fn run(&mut self) {
        if !self.slow_aborts && !self.aborts.is_empty() {
            self.carry_out_aborts();
        }
        while let Some(client) = self.resumed.pop_front() {
            let Stage::Resumed(release) = self.stage(client) else {
                continue;
            };
            let purpose = match release {
                Release::Collapsed => Purpose::Collapsed,
                Release::Lead => Purpose::Lead,
                Release::HitForMiss | Release::WaitTimeout | Release::NoRoom => Purpose::Bypass,
                Release::Alone if self.is_led_for(client) => {
                    self.lead_in_background(client);
                    continue;
                }
                Release::Alone => Purpose::Alone,
                Release::Varies => {
                    self.readmit(client);
                    continue;
                }
                Release::Unneeded => {
                    self.end_unneeded(client);
                    continue;
                }
            };
            self.enter(client, purpose);
        }
    }
}

fn stream_of(client: Client) -> StreamId {
    StreamId(u32::try_from(client.0).expect("fewer clients than that"))
}
