// SPDX-License-Identifier: Apache-2.0
//! A client that leaves in the middle of a cold object, and the cost for the next one.

use super::reader::{Read, Reader};
use super::{LIMIT, Scale, count_failures, fetch, within};
use crate::contenders::Contender;
use crate::machine::usage::Bystander;
use crate::origins::archive::{Archive, Counts, Object};
use sluice_tests::client::Client;
use std::net::SocketAddr;

/// Result of a client that leaves.
pub struct Leaver {
    /// Times of the next client; `None` if it did not receive the object's bytes.
    pub next: Option<Read>,
    /// Clients that did not receive the object's bytes.
    pub failed: u64,
    /// Requests and bytes of the origin, for both clients.
    pub origin: Counts,
}

/// Reads a quarter of a cold object, resets the connection, and then reads the whole on another connection.
pub async fn measure(contender: &Contender, archive: &Archive, scale: &Scale) -> (Leaver, f64) {
    let object = Object::new("leaver", scale.size);
    let bystander = Bystander::start();
    let _ = archive.take_counts();
    let left = within(LIMIT, leave(contender.address, &object)).await;
    let next = within(LIMIT, fetch(contender.address, &object)).await;
    let reasons = [left.err(), next.as_ref().err().cloned()];
    let leaver = Leaver {
        failed: count_failures(contender, reasons.iter().flatten()),
        next: next.ok(),
        origin: archive.take_counts(),
    };
    (leaver, bystander.foreign())
}

async fn leave(address: SocketAddr, object: &Object) -> Result<(), String> {
    let client = Client::try_connect(address).await;
    let client = client.map_err(|failure| failure.to_string())?;
    let reader = Reader::http1(client, object, &(0..object.size)).await?;
    reader.leave_after(object.size / 4).await
}
