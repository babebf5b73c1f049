// SPDX-License-Identifier: Apache-2.0
//! The life of one edge of a run amid its disturbances, with the times at which it is killed and started again.

use super::ledger::Wrong;
use super::plan::Plan;
use super::world::World;
use super::{damage, disturbance};
use crate::chance::rng::{Rng, mix};
use crate::edge::Edge;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Period of looking at the edge.
const PERIOD: Duration = Duration::from_millis(50);

/// An edge and its run.
pub struct Life {
    /// The plan of the run.
    pub plan: Plan,
    /// The state of the run.
    pub world: Arc<World>,
    /// The number of the edge.
    pub number: usize,
    /// The edge.
    pub edge: Edge,
}

impl Life {
    /// Runs for the planned time, and kills the edge from time to time, one edge after the other. Returns the edge.
    pub async fn run(mut self) -> Edge {
        let (begun, clock) = (Instant::now(), self.world.shelf.clock);
        let size = u32::try_from(self.world.fleet.size()).unwrap_or(u32::MAX);
        let turn = 1 + u32::try_from(self.number).unwrap_or(0);
        for phase in 0.. {
            let left = self.plan.lasts.saturating_sub(begun.elapsed());
            let turns = if phase == 0 { turn } else { size };
            let lasts = self.plan.lives.map_or(left, |lives| lives * turns);
            // Each phase of each edge has separate random numbers.
            let salt = phase + 1_000_000 * self.number as u64;
            let disturbed = self.disturb(salt);
            let alive = tokio::select! {
                alive = lives(&mut self.edge, lasts.min(left)) => alive,
                () = disturbed => true,
            };
            if !alive {
                let wrong = format!("edge {} has died", self.number);
                self.world
                    .ledger
                    .complain(Wrong::Crash, clock.now(), &wrong);
                // Failures from now on are expected.
                self.world.outages.of(self.number).begin(clock.now());
                break;
            }
            if begun.elapsed() >= self.plan.lasts {
                break;
            }
            self.crash(salt).await;
        }
        self.edge
    }

    async fn crash(&mut self, salt: u64) {
        let (world, number) = (Arc::clone(&self.world), self.number);
        let quiet = world.fleet.quiet().await;
        let outage = world.outages.of(number).hold(world.shelf.clock);
        let tears = self
            .plan
            .tears
            .then(|| Rng::new(self.plan.seed ^ mix(salt)));
        self.edge.crash(|cache| tear(&world, cache, tears)).await;
        drop(outage);
        world.fleet.started(number, &self.edge);
        drop(quiet);
        world.ledger.count("times an edge was killed");
    }

    /// Disturbs the edge until the future is dropped.
    fn disturb(&self, salt: u64) -> impl Future<Output = ()> + use<> {
        let (envoy, disk) = (self.edge.envoy_pid(), self.edge.disk());
        let (plan, world, number) = (self.plan.clone(), Arc::clone(&self.world), self.number);
        async move {
            let stalls = async {
                if plan.stalls {
                    let (world, workers) = (Arc::clone(&world), plan.workers);
                    disturbance::stall(world, envoy, workers, salt).await;
                }
            };
            let fills = async {
                if plan.fills {
                    disturbance::fill(Arc::clone(&world), disk, salt).await;
                }
            };
            let hangs_up = async {
                if plan.hangs_up {
                    disturbance::hang_up(Arc::clone(&world), number, salt).await;
                }
            };
            tokio::join!(stalls, fills, hangs_up, std::future::pending::<()>());
        }
    }
}

fn tear(world: &World, cache: &Path, rng: Option<Rng>) {
    if let Some(mut rng) = rng {
        let torn = damage::tear(cache, &mut rng).expect("a cache whose files can be written");
        world.ledger.add("files torn", torn);
    }
}

/// Waits for this long; false as soon as the edge has died.
async fn lives(edge: &mut Edge, lasts: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < lasts {
        tokio::time::sleep(PERIOD).await;
        if !edge.alive() {
            return false;
        }
    }
    true
}
