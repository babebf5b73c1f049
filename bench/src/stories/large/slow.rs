// SPDX-License-Identifier: Apache-2.0
//! Slow readers of a stored object, and the memory that they cost.

use super::reader::Reader;
use super::{LIMIT, MIB, Scale, count_failures, fetch, within};
use crate::contenders::{Contender, Kind};
use crate::figures::format::count;
use crate::machine::usage::Meter;
use crate::origins::archive::{Archive, Object};
use sluice_tests::client::Client;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Bytes that each client reads in a second.
pub const RATE: u32 = 512 << 10;
/// Receive buffer of a client, so that few of the bytes are in the kernel.
const BUFFER: u32 = 64 << 10;

/// Result of slow readers.
pub struct Slow {
    /// Growth of the server's memory to its peak, for each client, in MiB.
    pub each_mib: f64,
    /// The server's peak of memory, in MiB.
    pub peak_mib: f64,
    /// Average rate of a client, in MiB a second. Below [`RATE`] the server, the machine or the bench is too slow.
    pub rate_mib: f64,
    /// Clients that did not receive the object's bytes.
    pub failed: u64,
    /// Bytes that the origin sent meanwhile.
    pub origin_bytes: u64,
}

/// Number of slow readers: a tenth in front of a server that holds the object for each of them.
const fn readers(kind: Kind, scale: &Scale) -> u32 {
    match kind {
        Kind::SluiceWhole => scale.readers.div_ceil(10),
        _ => scale.readers,
    }
}

/// Has the object stored, and then lets slow clients read it. `None` if the server has died, and for the origin itself.
pub async fn measure(
    contender: &Contender,
    archive: &Archive,
    scale: &Scale,
) -> Option<(Slow, f64)> {
    let object = Object::new("slow", scale.size);
    for _ in 0..2 {
        let _ = within(LIMIT, fetch(contender.address, &object)).await;
    }
    let _ = archive.take_counts();
    let meter = Meter::start(&contender.pids);
    let before = meter.taken()?.peak_mib;
    let began = Instant::now();
    let mut reading = JoinSet::new();
    let readers = readers(contender.kind, scale);
    for number in 0..readers {
        let (object, span, address) = (object.clone(), scale.reading, contender.address);
        // Not all at once: a crowd is another scene.
        let due = began + span / 4 * number / readers;
        reading.spawn(async move {
            tokio::time::sleep_until(due).await;
            within(LIMIT, read_slowly(address, &object, began + span)).await
        });
    }
    let reads = reading.join_all().await;
    let rates: Vec<_> = reads.iter().flatten().copied().collect();
    let peak_mib = meter.taken()?.peak_mib;
    let slow = Slow {
        each_mib: (peak_mib - before) / count(reads.len()),
        peak_mib,
        rate_mib: rates.iter().sum::<f64>() / count(rates.len()),
        failed: count_failures(
            contender,
            reads.iter().filter_map(|read| read.as_ref().err()),
        ),
        origin_bytes: archive.take_counts().bytes,
    };
    Some((slow, meter.foreign()))
}

/// Reads at [`RATE`] until `end`, or to the end of the object. Returns the actual rate in MiB a second.
async fn read_slowly(address: SocketAddr, object: &Object, end: Instant) -> Result<f64, String> {
    let socket = TcpSocket::new_v4().map_err(|error| error.to_string())?;
    let narrow = socket.set_recv_buffer_size(BUFFER);
    narrow.map_err(|error| error.to_string())?;
    let stream = socket.connect(address).await;
    let client = Client::on(stream.map_err(|error| error.to_string())?);
    let mut reader = Reader::http1(client, object, &(0..object.size)).await?;
    let (began, mut read) = (Instant::now(), 0.0);
    while Instant::now() < end {
        let bytes = reader.next().await?;
        if bytes == 0 {
            break;
        }
        #[allow(clippy::cast_precision_loss)]
        {
            read += bytes as f64;
        }
        let due = Duration::from_secs_f64(read / f64::from(RATE));
        tokio::time::sleep_until(began + due).await;
    }
    Ok(read / MIB / began.elapsed().as_secs_f64())
}
