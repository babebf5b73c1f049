// SPDX-License-Identifier: Apache-2.0
//! Many clients of a cold object, which arrive one after the other while it is fetched.

use super::reader::{Read, Reader};
use super::{LIMIT, Scale, count_failures, within};
use crate::contenders::Contender;
use crate::figures::Distribution;
use crate::machine::usage::{Meter, Taken};
use crate::origins::archive::{Archive, Counts, Object};
use sluice_tests::chance::rng::Rng;
use sluice_tests::client::Client;
use sluice_tests::client::http2::Http2;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinSet;

/// Result of a crowd.
pub struct Crowd {
    /// Times to the first byte.
    pub first_bytes: Distribution,
    /// Times to the last byte.
    pub ends: Distribution,
    /// Clients that did not receive the object's bytes.
    pub failed: u64,
    /// Bytes that the other clients received.
    pub bytes: u64,
    /// Requests and bytes of the origin.
    pub origin: Counts,
    /// CPU time and memory of the server.
    pub taken: Option<Taken>,
}

/// A client of the crowd.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Visitor {
    /// When it arrives, after the first one.
    due: Duration,
    /// The bytes that it asks for.
    part: Range<u64>,
    /// Whether it uses the connection of HTTP/2 that some clients share.
    http2: bool,
}

/// Returns clients that arrive at random within `span`, the first one at once. Of each ten, two ask for the object from
/// a random position on, and two share a connection of HTTP/2.
fn visitors(clients: usize, size: u64, span: Duration) -> Vec<Visitor> {
    let mut rng = Rng::new(7);
    let mut random = |bound: u64| rng.next() % bound.max(1);
    let visitor = |number: usize| {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        let due = Duration::from_micros(random(micros));
        let start = random(size);
        Visitor {
            due: if number == 0 { Duration::ZERO } else { due },
            part: if number % 5 == 3 {
                start..size
            } else {
                0..size
            },
            http2: number % 5 == 4,
        }
    };
    (0..clients).map(visitor).collect()
}

/// Sends a crowd to a contender that has just been started.
pub async fn measure(contender: &Contender, archive: &Archive, scale: &Scale) -> (Crowd, f64) {
    let object = Object::new("crowd", scale.size);
    let shared = if contender.kind.takes_http2() {
        Http2::try_connect(contender.second)
            .await
            .ok()
            .map(Arc::new)
    } else {
        None
    };
    let _ = archive.take_counts();
    let (meter, began, start) = (
        Meter::start(&contender.pids),
        SystemTime::now(),
        Instant::now(),
    );
    let mut reading = JoinSet::new();
    for visitor in visitors(scale.crowd, scale.size, scale.arrival) {
        let (object, address) = (object.clone(), contender.address);
        let shared = shared.clone().filter(|_| visitor.http2);
        reading.spawn(async move {
            tokio::time::sleep_until((start + visitor.due).into()).await;
            within(
                LIMIT,
                visit(address, shared.as_deref(), &object, &visitor.part),
            )
            .await
        });
    }
    let reads = reading.join_all().await;
    let right: Vec<_> = reads.iter().flatten().collect();
    let times =
        |of: fn(&Read) -> Duration| right.iter().map(move |read| of(read)).collect::<Vec<_>>();
    let crowd = Crowd {
        first_bytes: Distribution::since(began, times(|read| read.first_byte)),
        ends: Distribution::since(began, times(|read| read.took)),
        bytes: right.iter().map(|read| read.bytes).sum(),
        failed: count_failures(
            contender,
            reads.iter().filter_map(|read| read.as_ref().err()),
        ),
        origin: archive.take_counts(),
        taken: meter.taken(),
    };
    (crowd, meter.foreign())
}

async fn visit(
    address: SocketAddr,
    shared: Option<&Http2>,
    object: &Object,
    part: &Range<u64>,
) -> Result<Read, String> {
    let reader = match shared {
        Some(connection) => Reader::http2(connection, object, part).await?,
        None => {
            let client = Client::try_connect(address).await;
            let client = client.map_err(|failure| failure.to_string())?;
            Reader::http1(client, object, part).await?
        }
    };
    reader.read().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_is_the_same_each_time_and_has_all_kinds_of_clients() {
        let span = Duration::from_secs(10);
        let crowd = visitors(50, 1 << 20, span);
        assert_eq!(crowd, visitors(50, 1 << 20, span));
        assert_eq!(crowd[0].due, Duration::ZERO);
        assert!(crowd.iter().all(|visitor| visitor.due < span));
        assert!(crowd.iter().all(|visitor| visitor.part.end == 1 << 20));
        let parts = crowd.iter().filter(|visitor| visitor.part.start > 0);
        assert_eq!(parts.count(), 10);
        assert_eq!(crowd.iter().filter(|visitor| visitor.http2).count(), 10);
    }
}
