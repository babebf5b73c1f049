// SPDX-License-Identifier: Apache-2.0
//! Questions to the control listener, and their answers.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod explanation;
mod flights;
mod inquiries;
mod purges;
mod recordings;
mod workers;

use serde_json::Value;
use sluice_fake::{Client, FakeEnvoy};

/// The document that a request to the control listener has got, with its status.
fn document(envoy: &FakeEnvoy, client: Client) -> (u16, Value) {
    let record = &envoy.clients[client.0];
    let document = serde_json::from_slice(record.body());
    (record.status(), document.unwrap_or(Value::Null))
}

/// Asks the worker at `seat`, delivers all messages, and returns the document.
fn inspect(envoy: &mut FakeEnvoy, seat: usize, path: &str, headers: &[(&str, &str)]) -> Value {
    let client = envoy.inspect(seat, path, headers);
    envoy.deliver_all();
    let (status, document) = document(envoy, client);
    assert_eq!(status, 200, "{document}");
    document
}

/// The number of the worker at `seat`.
fn number(envoy: &FakeEnvoy, seat: usize) -> u16 {
    envoy.worker(seat).unwrap().identity.worker.0
}

/// The answer of the worker at `seat` in a document.
fn answer_of<'a>(envoy: &FakeEnvoy, document: &'a Value, seat: usize) -> &'a Value {
    let number = number(envoy, seat);
    let mut workers = document["workers"].as_array().unwrap().iter();
    workers.find(|answer| answer["worker"] == number).unwrap()
}
