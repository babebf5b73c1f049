// SPDX-License-Identifier: Apache-2.0
//! The objects that are being fetched, and the requests that wait for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::control::filter::WorkerAnswers;

/// A flight, as one worker that takes part knows it.
#[derive(Clone, Debug, Deserialize)]
pub struct WorkerFlight {
    site: String,
    key: String,
    #[serde(default)]
    query: bool,
    since_ms: u64,
    bytes: Option<u64>,
    length: Option<u64>,
    status: Option<u16>,
    #[serde(default)]
    waiting: u64,
    leader: Leader,
    #[serde(default)]
    client: bool,
}

/// The place of the request that fetches the object.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
enum Leader {
    #[serde(rename = "here")]
    Here,
    #[serde(rename = "other worker")]
    OtherWorker,
}

/// The flights of one worker.
#[derive(Clone, Debug, Deserialize)]
pub struct WorkerFlights {
    flights: Vec<WorkerFlight>,
    #[serde(default)]
    cut: bool,
}

/// An object that is being fetched from the origin.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Flight {
    /// The site; empty for an edge with one site.
    pub site: String,
    /// The path.
    pub key: String,
    /// Whether the URL has a query.
    pub query: bool,
    /// Milliseconds since the flight began.
    pub since_ms: u64,
    /// Bytes of the body that have arrived.
    pub bytes: u64,
    /// The length of the body, if the origin has announced one.
    pub length: Option<u64>,
    /// The status of the response; `None` until its headers have arrived.
    pub status: Option<u16>,
    /// The number of requests that wait, on all workers.
    pub waiting: u64,
    /// The worker whose request fetches the object; `None` if that worker has not answered.
    pub worker: Option<u32>,
    /// Whether the client of that request is connected.
    pub client: bool,
}

/// All flights.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Flights {
    /// The flights, those with the most waiting requests first, then the longest.
    pub flights: Vec<Flight>,
    /// Whether a worker has left out flights, because there are too many for its answer.
    pub cut: bool,
    /// The numbers of the workers that have not answered.
    pub silent: Vec<u32>,
}

impl Flights {
    /// Joins the answers of the workers: one flight for each site and key.
    pub fn join(answers: WorkerAnswers<WorkerFlights>) -> Self {
        let mut joined: BTreeMap<(String, String), Flight> = BTreeMap::new();
        let mut cut = false;
        for answer in answers.workers {
            cut |= answer.answer.cut;
            for part in answer.answer.flights {
                let name = (part.site.clone(), part.key.clone());
                let worker = (part.leader == Leader::Here).then_some(answer.worker);
                let part = part.into_flight(worker);
                match joined.get_mut(&name) {
                    Some(flight) => flight.add(part),
                    None => {
                        joined.insert(name, part);
                    }
                }
            }
        }
        let mut flights: Vec<_> = joined.into_values().collect();
        flights.sort_by_key(|flight| std::cmp::Reverse((flight.waiting, flight.since_ms)));
        Self {
            flights,
            cut,
            silent: answers.silent,
        }
    }
}

impl WorkerFlight {
    fn into_flight(self, worker: Option<u32>) -> Flight {
        Flight {
            site: self.site,
            key: self.key,
            query: self.query,
            since_ms: self.since_ms,
            bytes: self.bytes.unwrap_or(0),
            length: self.length,
            status: self.status,
            waiting: self.waiting,
            worker,
            client: self.client,
        }
    }
}

impl Flight {
    /// Adds the part of another worker. The worker with the leader knows the response.
    fn add(&mut self, other: Self) {
        let waiting = self.waiting + other.waiting;
        let query = self.query | other.query;
        let since_ms = self.since_ms.max(other.since_ms);
        if other.worker.is_some() {
            *self = Self { since_ms, ..other };
        }
        (self.waiting, self.query) = (waiting, query);
        if self.worker.is_none() {
            self.since_ms = since_ms;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn followers_of_other_workers_are_added_to_the_flight_of_the_leader() {
        let part = |worker: u32, leader: &str, waiting: u64, bytes: u64| {
            json!({"worker": worker, "flights": [{
                "site": "files", "key": "/big.iso", "query": false, "since_ms": 12400, "bytes": (leader == "here").then_some(bytes),
                "length": 4_600_000_000_u64, "status": 200, "waiting": waiting, "leader": leader, "client": true,
            }]})
        };
        let answers = json!({"workers": [
            part(0, "other worker", 4, 0), part(1, "here", 3, 1_100_000), part(2, "other worker", 1, 0),
        ], "silent": [3]});
        let joined = Flights::join(serde_json::from_value(answers).unwrap());
        assert_eq!(joined.silent, [3]);
        let [flight] = joined.flights.as_slice() else {
            panic!("{joined:?}");
        };
        assert_eq!(
            (flight.waiting, flight.worker, flight.bytes),
            (8, Some(1), 1_100_000)
        );
    }

    #[test]
    fn flights_with_the_most_waiting_requests_are_first() {
        let flight = |key: &str, waiting: u64, since_ms: u64| {
            json!({"site": "", "key": key, "since_ms": since_ms, "length": null, "status": null,
                "waiting": waiting, "leader": "here"})
        };
        let flights = [flight("/a", 0, 10), flight("/b", 5, 1), flight("/c", 0, 20)];
        let answers = json!({"workers": [{"worker": 0, "flights": flights}], "silent": []});
        let joined = Flights::join(serde_json::from_value(answers).unwrap());
        let keys: Vec<_> = joined
            .flights
            .iter()
            .map(|flight| flight.key.as_str())
            .collect();
        assert_eq!(keys, ["/b", "/c", "/a"]);
    }
}
