// SPDX-License-Identifier: Apache-2.0
//! The hit ratio of small objects while one client reads an object that is much larger than the cache.

use super::{Scale, count_failures, fetch, within};
use crate::contenders::Contender;
use crate::figures::format::count;
use crate::machine::usage::Meter;
use crate::origins::archive::{Archive, Counts, Object};
use sluice_tests::chance::popularity::Zipf;
use sluice_tests::chance::rng::Rng;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// Size of the cache: a 64th of the object.
pub const CACHE: u64 = 128 << 20;
/// Settings of the edge.
pub const SETTINGS: [(&str, &str); 2] = [
    ("SLUICE_CACHE_MAX_BYTES", "128MiB"),
    ("SLUICE_CACHE_MAX_OBJECT_BYTES", "1MiB"),
];
/// Number of small objects, which fill half of the cache, and their size in bytes.
const OBJECTS: usize = 640;
const SIZE: u64 = 100_000;
/// How uneven the popularity of the small objects is.
const EXPONENT: f64 = 0.8;
/// Clients of small objects, and the time of each between a response and its next request.
const CLIENTS: u64 = 8;
const THINKS: Duration = Duration::from_millis(30);
/// Bound of the time of a client of a small object, and of the client of the large one.
const PATIENCE: Duration = Duration::from_secs(30);
const LARGE_PATIENCE: Duration = Duration::from_secs(30 * 60);

/// Result for the neighbours of a large object.
pub struct Neighbours {
    /// Hit ratio of the small objects, 0 to 1, without the large one and beside it.
    pub alone: f64,
    pub beside: f64,
    /// Requests for small objects beside the large one.
    pub requests: u64,
    /// Time of the client of the large object; `None` if it did not receive the object's bytes.
    pub took: Option<Duration>,
    /// Clients that did not receive their object's bytes.
    pub failed: u64,
    /// Requests and bytes of the origin, beside the large object.
    pub origin: Counts,
}

/// Requests for small objects and their failures.
#[derive(Default)]
struct Requested {
    requests: AtomicU64,
    failed: AtomicU64,
    over: AtomicBool,
}

/// Measures the hit ratio for some time, and then while the large object is read.
pub async fn measure(contender: &Contender, archive: &Archive, scale: &Scale) -> (Neighbours, f64) {
    let address = contender.address;
    for number in 0..OBJECTS {
        let _ = within(PATIENCE, fetch(address, &small(number))).await;
    }
    let meter = Meter::start(&contender.pids);
    let (alone, ..) = ratio(address, archive, tokio::time::sleep(scale.alone)).await;
    let large = Object::new("neighbour", CACHE * scale.times_cache);
    let read = within(LARGE_PATIENCE, fetch(address, &large));
    let (beside, read, requested, origin) = ratio(address, archive, read).await;
    let failed = count_failures(contender, read.as_ref().err());
    let neighbours = Neighbours {
        alone,
        beside,
        requests: requested.requests.load(Ordering::Relaxed),
        took: read.ok().map(|read| read.took),
        failed: failed + requested.failed.load(Ordering::Relaxed),
        origin,
    };
    (neighbours, meter.foreign())
}

/// Has clients read small objects until `meanwhile` has ended. Returns their hit ratio.
async fn ratio<T>(
    address: SocketAddr,
    archive: &Archive,
    meanwhile: impl Future<Output = T>,
) -> (f64, T, Arc<Requested>, Counts) {
    let _ = archive.take_counts();
    let requested = Arc::new(Requested::default());
    let popularity = Arc::new(Zipf::new(OBJECTS, EXPONENT));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let (requested, popularity) = (Arc::clone(&requested), Arc::clone(&popularity));
        clients.spawn(async move {
            let mut rng = Rng::new(number);
            while !requested.over.load(Ordering::Relaxed) {
                let object = small(popularity.draw(&mut rng));
                let read = within(PATIENCE, fetch(address, &object)).await;
                requested.requests.fetch_add(1, Ordering::Relaxed);
                let failed = u64::from(read.is_err());
                requested.failed.fetch_add(failed, Ordering::Relaxed);
                tokio::time::sleep(THINKS).await;
            }
        });
    }
    let result = meanwhile.await;
    requested.over.store(true, Ordering::Relaxed);
    clients.join_all().await;
    let origin = archive.take_counts();
    let misses = count(usize::try_from(origin.small_gets).unwrap_or(usize::MAX));
    let requests = requested.requests.load(Ordering::Relaxed);
    let requests = count(usize::try_from(requests).unwrap_or(usize::MAX));
    (1.0 - misses / requests, result, requested, origin)
}

fn small(number: usize) -> Object {
    let path = format!("/{SIZE}/small-{number}.js");
    Object::of(&path).expect("a path with a size")
}
