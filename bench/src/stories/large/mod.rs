// SPDX-License-Identifier: Apache-2.0
//! Large objects: a crowd in front of a cold one, slow readers, far ranges, reading in sequence, a client that leaves,
//! a huge object, and the neighbours of an object that is larger than the cache.

mod crowd;
mod far;
mod huge;
mod leaver;
mod neighbours;
mod reader;
mod report;
mod sequence;
mod slow;

use crate::contenders::{Before, Contender, Kind};
use crate::figures::{Row, in_turn};
use crate::origins::archive::{Archive, Object};
use crate::peers::nginx::Caching;
use crate::report::Report;
use crate::stories::scope;
use crowd::Crowd;
use far::Far;
use huge::Huge;
use leaver::Leaver;
use neighbours::Neighbours;
use reader::{Read, Reader};
use report::report;
use sequence::Sequence;
use slow::Slow;
use sluice_tests::client::Client;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

/// Bytes of a MiB.
const MIB: f64 = 1_048_576.0;

/// Bound of the time of a client that reads a whole object.
const LIMIT: Duration = Duration::from_secs(60);

const KINDS: [Kind; 7] = [
    Kind::Origin,
    Kind::Sluice,
    Kind::SluiceNative,
    Kind::SluiceWhole,
    Kind::Nginx(Caching::Slices),
    Kind::Varnish,
    Kind::TrafficServerSlices,
];
const QUICK: [Kind; 3] = [
    Kind::Sluice,
    Kind::SluiceWhole,
    Kind::Nginx(Caching::Slices),
];

/// The contenders whose caches the bench can size.
const SIZED: [Kind; 2] = [Kind::Sluice, Kind::SluiceNative];
/// The names of the scenes in `SCENES`.
const SCENES: [&str; 7] = [
    "crowd",
    "slow",
    "far",
    "sequence",
    "leaver",
    "huge",
    "neighbours",
];

/// Scale of the measurement.
struct Scale {
    rounds: u32,
    /// Size of the objects, except those with far ranges.
    size: u64,
    /// Clients of a crowd, and the time in which they arrive.
    crowd: usize,
    arrival: Duration,
    /// Slow readers, and how long they read.
    readers: u32,
    reading: Duration,
    /// Huge objects with far ranges, and the bound of the time for each.
    objects: u32,
    patience: Duration,
    /// Reads of a stored object.
    hits: u32,
    /// Size of the object that fits into the cache once.
    huge: u64,
    /// Size of the object that does not fit, as a multiple of the cache.
    times_cache: u64,
    /// How long the neighbours are measured without it.
    alone: Duration,
}

/// Results of the story, a list of rows for each scene.
struct Found {
    crowds: Vec<Row<Kind, Crowd>>,
    slow: Vec<Row<Kind, Slow>>,
    far: Vec<Row<Kind, Far>>,
    sequences: Vec<Row<Kind, Sequence>>,
    leavers: Vec<Row<Kind, Leaver>>,
    huge: Vec<Row<Kind, Huge>>,
    neighbours: Vec<Row<Kind, Neighbours>>,
}

impl Scale {
    fn new(quick: bool) -> Self {
        if quick {
            return Self {
                rounds: 1,
                size: 32 << 20,
                crowd: 20,
                arrival: Duration::from_secs(1),
                readers: 50,
                reading: Duration::from_secs(2),
                objects: 1,
                patience: Duration::from_secs(2),
                hits: 2,
                huge: 128 << 20,
                times_cache: 2,
                alone: Duration::from_secs(2),
            };
        }
        Self {
            rounds: scope::rounds(3),
            size: 64 << 20,
            crowd: 50,
            arrival: Duration::from_secs(10),
            readers: 200,
            reading: Duration::from_secs(6),
            objects: 3,
            patience: Duration::from_secs(15),
            hits: 8,
            huge: far::SIZE,
            times_cache: 64,
            alone: Duration::from_secs(20),
        }
    }
}

pub async fn run(quick: bool) -> Report {
    let scale = Scale::new(quick);
    let kinds = scope::contenders(if quick { &QUICK } else { &KINDS });
    let sized = kinds.iter().filter(|kind| SIZED.contains(kind));
    let sized: Vec<_> = sized.copied().collect();
    let scenes = scope::scenes(&SCENES);
    let archive = Archive::start();
    // Started for each scene, so that a scene begins with an empty cache and is charged for its own memory only.
    let with = async |kind: Kind, settings: &[(&str, &str)]| {
        kind.start_with(Before::Archive(&archive), settings).await
    };
    let start = async |kind| with(kind, &[]).await;
    let of = |scene: &str, kinds: &[Kind]| {
        let wanted = scenes.contains(&scene);
        eprintln!("{scene}{}", if wanted { "" } else { ": left out" });
        kinds.iter().copied().filter(|_| wanted).collect::<Vec<_>>()
    };
    let rounds = scale.rounds;
    let crowds = in_turn(of("crowd", &kinds), rounds, async |kind, _| {
        Some(crowd::measure(&start(kind).await?, &archive, &scale).await)
    });
    let crowds = crowds.await;
    let slow = in_turn(of("slow", &kinds), rounds, async |kind, _| {
        slow::measure(&start(kind).await?, &archive, &scale).await
    });
    let slow = slow.await;
    let far = in_turn(of("far", &kinds), rounds, async |kind, _| {
        Some(far::measure(&start(kind).await?, &archive, &scale).await)
    });
    let far = far.await;
    let sequences = in_turn(of("sequence", &kinds), rounds, async |kind, _| {
        Some(sequence::measure(&start(kind).await?, &archive, &scale).await)
    });
    let sequences = sequences.await;
    let leavers = in_turn(of("leaver", &kinds), rounds, async |kind, _| {
        Some(leaver::measure(&start(kind).await?, &archive, &scale).await)
    });
    let leavers = leavers.await;
    // One round, because each takes minutes.
    let huge = in_turn(of("huge", &sized), 1, async |kind, _| {
        let edge = with(kind, &huge::SETTINGS).await?;
        Some(huge::measure(&edge, &archive, &scale).await)
    });
    let huge = huge.await;
    let neighbours = in_turn(of("neighbours", &sized), 1, async |kind, _| {
        let edge = with(kind, &neighbours::SETTINGS).await?;
        Some(neighbours::measure(&edge, &archive, &scale).await)
    });
    let found = Found {
        crowds,
        slow,
        far,
        sequences,
        leavers,
        huge,
        neighbours: neighbours.await,
    };
    report(&found, &scale)
}

/// Reads an object on a new connection.
async fn fetch(address: SocketAddr, object: &Object) -> Result<Read, String> {
    read_part(address, object, &(0..object.size)).await
}

/// Reads a part of an object on a new connection.
async fn read_part(
    address: SocketAddr,
    object: &Object,
    part: &Range<u64>,
) -> Result<Read, String> {
    let client = Client::try_connect(address).await;
    let client = client.map_err(|failure| failure.to_string())?;
    let reader = Reader::http1(client, object, part).await?;
    reader.read().await
}

/// Waits for a result for `limit` at most.
async fn within<T>(
    limit: Duration,
    result: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    match tokio::time::timeout(limit, result).await {
        Ok(result) => result,
        Err(_) => Err(format!("not within {} s", limit.as_secs())),
    }
}

/// Prints the first reason, and returns the number of failures.
fn count_failures<'a>(contender: &Contender, reasons: impl IntoIterator<Item = &'a String>) -> u64 {
    let reasons: Vec<_> = reasons.into_iter().collect();
    if let Some(reason) = reasons.first() {
        eprintln!("{}: {} failed: {reason}", contender.kind, reasons.len());
    }
    reasons.len() as u64
}
