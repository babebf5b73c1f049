// SPDX-License-Identifier: Apache-2.0
//! CPU time that requests take: of the server, of the generator on the same machine, and of other processes.

use crate::machine::usage::{self, Bystander, Meter};
use std::time::{Duration, Instant};

/// CPU time of some requests.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// CPU time of the server for each request, in microseconds.
    pub server: f64,
    /// CPU time of the generator for each request, in microseconds.
    pub generator: f64,
    /// Number of cores that both have kept busy.
    pub cores: f64,
    /// The part of all cores, 0 to 1, that other processes took.
    pub foreign: f64,
}

/// Measures the CPU time of a server, and of generators that end meanwhile.
pub struct Watch {
    began: Instant,
    generators: Duration,
    bystander: Bystander,
    server: Meter,
}

impl Watch {
    /// Starts to measure the server with these processes.
    pub fn start(server: &[u32]) -> Self {
        Self {
            began: Instant::now(),
            generators: usage::ended(),
            bystander: Bystander::start(),
            server: Meter::start(server),
        }
    }

    /// CPU time of this many requests.
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
