// SPDX-License-Identifier: Apache-2.0
//! A few bytes deep in a huge object, twice.

use super::reader::Reader;
use super::{Scale, count_failures, within};
use crate::contenders::Contender;
use crate::figures::Distribution;
use crate::machine::usage::Bystander;
use crate::origins::archive::{Archive, Counts, Object};
use sluice_tests::client::Client;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// Size of the object.
pub const SIZE: u64 = 5_000_000_000;
/// The bytes that are asked for.
pub const PART: Range<u64> = 4_000_000_000..4_000_001_000;

/// Result of far ranges.
pub struct Far {
    /// Times to the first byte of a cold part.
    pub cold: Distribution,
    /// Times to the first byte when it is asked for again.
    pub again: Distribution,
    /// Objects whose part was not received in time.
    pub failed: u64,
    /// Objects that were asked for.
    pub objects: u64,
    /// Requests and bytes of the origin.
    pub origin: Counts,
}

/// Asks for the part of some cold objects, each twice. Ends at the first failure, because a server may then be busy.
pub async fn measure(contender: &Contender, archive: &Archive, scale: &Scale) -> (Far, f64) {
    let (began, bystander) = (SystemTime::now(), Bystander::start());
    let _ = archive.take_counts();
    let (mut cold, mut again, mut objects, mut failed) = (Vec::new(), Vec::new(), 0, 0);
    for number in 0..scale.objects {
        let object = Object::new(&format!("far-{number}"), SIZE);
        objects += 1;
        let twice = async {
            let first = ask(contender.address, &object).await?;
            Ok((first, ask(contender.address, &object).await?))
        };
        match within(scale.patience, twice).await {
            Ok((first, second)) => {
                cold.push(first);
                again.push(second);
            }
            Err(reason) => {
                failed = count_failures(contender, [&reason]);
                break;
            }
        }
    }
    let far = Far {
        cold: Distribution::since(began, cold),
        again: Distribution::since(began, again),
        failed,
        objects,
        origin: archive.take_counts(),
    };
    (far, bystander.foreign())
}

/// Reads the part, and returns the time to its first byte.
async fn ask(address: SocketAddr, object: &Object) -> Result<Duration, String> {
    let client = Client::try_connect(address).await;
    let client = client.map_err(|failure| failure.to_string())?;
    let reader = Reader::http1(client, object, &PART).await?;
    Ok(reader.read().await?.first_byte)
}
