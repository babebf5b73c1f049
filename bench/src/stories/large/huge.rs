// SPDX-License-Identifier: Apache-2.0
//! Three clients of one cold huge object, in front of a cache that has room for it.

use super::{Scale, count_failures, fetch, read_part, within};
use crate::contenders::Contender;
use crate::machine::usage::Meter;
use crate::origins::archive::{Archive, Counts, Object};
use std::ops::Range;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Clients, which arrive at once.
pub const CLIENTS: usize = 3;
/// Settings of the edge.
pub const SETTINGS: [(&str, &str); 1] = [("SLUICE_CACHE_MAX_BYTES", "20GiB")];
/// Bound of the time of a client.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Bytes near the end of the object that are read again.
const AGAIN: u64 = 1 << 20;

/// Result of a huge object.
pub struct Huge {
    /// Time until all clients had the object.
    pub took: Duration,
    /// Clients that did not receive the object's bytes.
    pub failed: u64,
    /// Requests and bytes of the origin for them.
    pub origin: Counts,
    /// Growth of the server's memory to its peak, in MiB.
    pub growth_mib: Option<f64>,
    /// Bytes of the origin for a part that is read again.
    pub again_bytes: u64,
}

/// Lets the clients read the object, and then reads a part of it again.
pub async fn measure(contender: &Contender, archive: &Archive, scale: &Scale) -> (Huge, f64) {
    let object = Object::new("huge", scale.huge);
    let address = contender.address;
    let _ = archive.take_counts();
    let meter = Meter::start(&contender.pids);
    let before = meter.taken().map(|taken| taken.peak_mib);
    let began = Instant::now();
    let mut reading = JoinSet::new();
    for _ in 0..CLIENTS {
        let object = object.clone();
        reading.spawn(async move { within(PATIENCE, fetch(address, &object)).await });
    }
    let mut reads = reading.join_all().await;
    let took = began.elapsed();
    let (origin, peak) = (archive.take_counts(), meter.taken());
    let again: Range<u64> = object.size - AGAIN - 1..object.size - 1;
    reads.push(within(PATIENCE, read_part(address, &object, &again)).await);
    let huge = Huge {
        took,
        failed: count_failures(
            contender,
            reads.iter().filter_map(|read| read.as_ref().err()),
        ),
        origin,
        growth_mib: peak
            .zip(before)
            .map(|(peak, before)| peak.peak_mib - before),
        again_bytes: archive.take_counts().bytes,
    };
    (huge, meter.foreign())
}
