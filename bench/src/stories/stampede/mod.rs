// SPDX-License-Identifier: Apache-2.0
//! The stampede: many clients of one key, in situations with failures.

mod clients;
mod report;
mod scene;

use crate::contenders::{Before, Contender, Kind, start_all};
use crate::figures::{self, Distribution};
use crate::machine::usage::{Meter, Taken};
use crate::peers::nginx::Caching;
use crate::progress::Progress;
use crate::report::Report;
use clients::{Answer, after_a_leader, again_and_again, at_once, behind_a_leader};
use report::report;
use scene::Scene;
use sluice_tests::origin::Origin;
use std::fmt;
use std::time::{Duration, SystemTime};

const SIZE: usize = 10_000;
/// Time of the origin for a response.
const ORIGIN: Duration = Duration::from_millis(100);
/// Followers arrive evenly over nginx's interval: all at once they would share one phase of its timer, and its figure
/// would be luck.
const ARRIVAL: Duration = Duration::from_millis(500);
/// Pause of repeating clients after a response.
const REST: Duration = Duration::from_millis(10);

const NGINX: Kind = Kind::Nginx(Caching::Lock);
const KINDS: [Kind; 9] = [
    Kind::Origin,
    NGINX,
    Kind::Varnish,
    Kind::Sluice,
    Kind::Bare,
    Kind::Haproxy,
    Kind::TrafficServer,
    UPDATING,
    Kind::SluiceStale,
];
const UPDATING: Kind = Kind::Nginx(Caching::BackgroundUpdate);

/// Scale of the measurement.
struct Scale {
    rounds: usize,
    /// Number of clients in scenes that do not vary it.
    crowd: usize,
    /// Number of clients that send one request after the other.
    regulars: usize,
    /// How long they do so where an object expires, and where the origin fails.
    expiring: Duration,
    failing: Duration,
}

impl Scale {
    const fn new(quick: bool) -> Self {
        if quick {
            return Self {
                rounds: 1,
                crowd: 20,
                regulars: 10,
                // An object that is fresh for a second expires once.
                expiring: Duration::from_millis(1_500),
                failing: Duration::from_millis(500),
            };
        }
        Self {
            rounds: 3,
            crowd: 50,
            regulars: 20,
            expiring: Duration::from_secs(3),
            failing: Duration::from_secs(10),
        }
    }
}

/// One scene with one contender.
struct Run {
    /// Requests that the origin received.
    fetches: usize,
    /// Requests that clients sent.
    requests: usize,
    /// Requests without the expected response.
    failed: usize,
    /// Times from sending to the end of the response.
    times: Distribution,
    /// CPU time and memory of the server; `None` if it has died, and for the origin itself.
    taken: Option<Taken>,
}

/// A contender in a scene.
#[derive(Clone, Copy, PartialEq)]
struct Case {
    scene: Scene,
    kind: Kind,
}

type Row = figures::Row<Case, Run>;

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.scene, self.kind)
    }
}

pub async fn run(quick: bool) -> Report {
    let scale = Scale::new(quick);
    let scenes = Scene::all(quick);
    let of_scene = |&scene: &Scene| {
        let kinds = KINDS.into_iter().filter(move |kind| scene.concerns(*kind));
        kinds.map(move |kind| Row::new(Case { scene, kind }))
    };
    let mut rows: Vec<_> = scenes.iter().flat_map(of_scene).collect();
    let progress = Progress::of(scale.rounds * scenes.len());
    for round in 1..=scale.rounds {
        let origin = Origin::start().ready().await;
        // NB: started again in each round, because not every contender survives the last scene.
        let contenders = start_all(&KINDS, Before::Origin(&origin)).await;
        for &scene in &scenes {
            progress.step(format_args!("{scene}, round {round}"));
            let concerned = contenders
                .iter()
                .filter(|contender| scene.concerns(contender.kind));
            for (contender, at) in concerned.zip(0..) {
                let name = scene.to_string().replace([' ', ','], "-");
                let target = format!("/{round}/{at}/{name}");
                origin.on(&target, scene.reply());
                let run = play(scene, contender, &origin, &target, &scale).await;
                let kind = contender.kind;
                let row = rows.iter_mut().find(|row| row.case == Case { scene, kind });
                row.expect("a row").runs.add(run);
            }
        }
    }
    rows.retain(|row| !row.runs.is_empty());
    report(&rows, &scale)
}

async fn play(
    scene: Scene,
    contender: &Contender,
    origin: &Origin,
    target: &str,
    scale: &Scale,
) -> (Run, f64) {
    let (meter, began) = (Meter::start(&contender.pids), SystemTime::now());
    let address = contender.address;
    let answers = match scene {
        Scene::Cold(clients) => at_once(address, target, clients).await,
        Scene::Uncacheable | Scene::SlowLeader => at_once(address, target, scale.crowd).await,
        Scene::Expiring => again_and_again(address, target, scale.regulars, scale.expiring).await,
        Scene::Failing => again_and_again(address, target, scale.regulars, scale.failing).await,
        Scene::Followers(count) => behind_a_leader(address, origin, target, count).await,
        Scene::LeaderLeaves => after_a_leader(address, origin, target, scale.crowd).await,
    };
    let right = |answer: &Answer| match &answer.response {
        Ok(response) => response.status == scene.status(),
        Err(_) => false,
    };
    let taken = meter.taken();
    let times: Vec<_> = answers
        .iter()
        .filter(|answer| right(answer))
        .map(|answer| answer.took)
        .collect();
    let run = Run {
        fetches: origin.count(target),
        requests: answers.len(),
        failed: answers.iter().filter(|answer| !right(answer)).count(),
        times: Distribution::since(began, times),
        taken,
    };
    (run, meter.foreign())
}

impl Run {
    fn median(&self) -> Option<f64> {
        (self.times.count() > 0).then(|| self.times.percentile(50.0))
    }

    fn longest(&self) -> Option<f64> {
        (self.times.count() > 0).then(|| self.times.percentile(100.0))
    }

    /// Microseconds of CPU time for each request.
    fn cpu(&self) -> Option<f64> {
        Some(self.taken?.cpu_us(self.requests as u64))
    }

    fn memory(&self) -> Option<f64> {
        Some(self.taken?.peak_mib)
    }
}
