// SPDX-License-Identifier: Apache-2.0
//! One client that reads an object from its beginning to its end: cold, and then again and again.

use super::{LIMIT, MIB, Scale, count_failures, fetch, within};
use crate::contenders::Contender;
use crate::machine::usage::Meter;
use crate::origins::archive::{Archive, Object};

/// Result of reading in sequence.
pub struct Sequence {
    /// MiB a second, cold.
    pub cold: Option<f64>,
    /// MiB a second, stored; `None` if the origin was asked, or if a read failed.
    pub hit: Option<f64>,
    /// CPU time for each MiB of a hit, in microseconds; `None` in the same cases, and for the origin itself.
    pub cpu: Option<f64>,
    /// Reads that did not receive the object's bytes.
    pub failed: u64,
    /// Bytes that the origin sent for the reads after the first two.
    pub origin_bytes: u64,
}

/// Reads an object twice, and then as often as the scale says.
pub async fn measure(contender: &Contender, archive: &Archive, scale: &Scale) -> (Sequence, f64) {
    let object = Object::new("sequence", scale.size);
    #[allow(clippy::cast_precision_loss)]
    let mib = object.size as f64 / MIB;
    let read = async || within(LIMIT, fetch(contender.address, &object)).await;
    let first = read().await;
    // An object whose first client got it as it passed may be stored only by the second.
    let second = read().await;
    let _ = archive.take_counts();
    let meter = Meter::start(&contender.pids);
    let mut hits = Vec::new();
    for _ in 0..scale.hits {
        hits.push(read().await);
    }
    let right: Vec<_> = hits.iter().flatten().collect();
    let seconds: f64 = right.iter().map(|read| read.took.as_secs_f64()).sum();
    #[allow(clippy::cast_precision_loss)]
    let total = mib * right.len() as f64;
    let origin_bytes = archive.take_counts().bytes;
    let are_hits = right.len() == hits.len() && origin_bytes == 0;
    let reads = [&first, &second].into_iter().chain(&hits);
    let sequence = Sequence {
        cold: first
            .as_ref()
            .ok()
            .map(|read| mib / read.took.as_secs_f64()),
        hit: are_hits.then(|| total / seconds),
        cpu: meter
            .taken()
            .filter(|_| are_hits)
            .map(|taken| taken.cpu.as_secs_f64() * 1e6 / total),
        failed: count_failures(contender, reads.filter_map(|read| read.as_ref().err())),
        origin_bytes,
    };
    (sequence, meter.foreign())
}
