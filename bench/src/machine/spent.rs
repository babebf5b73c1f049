// SPDX-License-Identifier: Apache-2.0
//! What requests take of the machine: of the server, of the generator that shares it, and of others.

use crate::machine::usage::{self, Bystander, Meter};
use std::time::{Duration, Instant};

/// What some requests have taken.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// CPU time of the server for each request, in microseconds.
    pub server: f64,
    /// CPU time of the generator for each request, in microseconds.
    pub generator: f64,
    /// How many cores both have kept busy.
    pub cores: f64,
    /// The part of all cores, 0 to 1, that others took.
    pub foreign: f64,
}

/// Sees what is taken from now on by a server, and by generators that end meanwhile.
pub struct Watch {
    began: Instant,
    generators: Duration,
    bystander: Bystander,
    server: Meter,
}

impl Watch {
    /// From now on, of the server with these processes.
    pub fn start(server: &[u32]) -> Self {
        Self {
            began: Instant::now(),
            generators: usage::ended(),
            bystander: Bystander::start(),
            server: Meter::start(server),
        }
    }

    /// What so many requests have taken.
    ///
    /// # Panics
    /// When the server has ended.
    pub fn spent(&self, requests: u64) -> Spent {
        let elapsed = self.began.elapsed();
        let server = self.server.taken().expect("a server that runs");
        let generators = usage::ended().saturating_sub(self.generators);
        #[allow(clippy::cast_precision_loss)]
        let count = requests.max(1) as f64;
        Spent {
            server: server.cpu_us(requests.max(1)),
            generator: generators.as_secs_f64() * 1e6 / count,
            cores: (server.cpu + generators).as_secs_f64() / elapsed.as_secs_f64(),
            foreign: self.bystander.foreign(),
        }
    }
}
