// SPDX-License-Identifier: Apache-2.0
//! The requests to the origin, how their responses ended, and which of them ran beside another request for the same
//! key.

use super::clock::Moment;
use super::fault::Fault;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::SystemTime;

/// How a response of the origin has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Under way.
    Open,
    /// Sent.
    Sent,
    /// Ended by the client.
    Left,
}

/// The origin that gets a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The first origin.
    First,
    /// The origin behind the first one.
    Second,
}

/// A slice of a version of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// Version of the object.
    pub version: u64,
    /// Position of the first byte.
    pub first: usize,
}

/// Key of the response of a fetch: the object, its variant, and the slice, if it is one.
pub type Key = (usize, String, Option<Slice>);

/// A request to the origin.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// Number of the object.
    pub object: usize,
    /// Variant of the object.
    pub variant: String,
    /// The slice that it asks for; `None` for a whole object.
    pub slice: Option<Slice>,
    /// The version of the object at that time.
    pub version: u64,
    /// `Date` of its response.
    pub date: SystemTime,
    /// The number of the edge that sends it.
    pub edge: usize,
    /// The origin that gets it.
    pub server: Server,
    /// Whether it asks for a body.
    pub body: bool,
    /// Whether its response is for one client only: its header fields prevent it from leading, or it asks for a slice
    /// of a former version.
    pub alone: bool,
    /// Whether it is conditional.
    pub conditional: bool,
    /// Whether its condition is met: the response is a 304.
    pub unchanged: bool,
    /// Time at which it arrived.
    pub begun: Moment,
    /// How its response ended, and when.
    pub ended: (Ending, Moment),
    /// The fault that it got, and when.
    pub fault: Option<(Fault, Moment)>,
}

impl Fetch {
    /// The key of its response.
    #[must_use]
    pub fn key(&self) -> Key {
        (self.object, self.variant.clone(), self.slice)
    }
}

/// A fetch of a key that arrived while other fetches of the key ran.
#[derive(Clone, Debug)]
pub struct Overlap {
    /// The fetch.
    pub fetch: usize,
    /// The fetches that ran.
    pub running: Vec<usize>,
}

#[derive(Default)]
struct Book {
    all: Vec<Fetch>,
    /// Bodies under way.
    running: HashMap<Key, Vec<usize>>,
    overlaps: Vec<Overlap>,
    /// The fetches of each object.
    of_object: HashMap<usize, Vec<usize>>,
    /// The fetches that got a fault, by object.
    failed: HashMap<usize, Vec<usize>>,
}

/// All requests to the origin, each under its number.
#[derive(Default)]
pub struct Fetches(Mutex<Book>);

impl Fetches {
    /// Records a request, and returns its number.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn begin(&self, fetch: Fetch) -> usize {
        let mut book = self.0.lock().unwrap();
        let number = book.all.len();
        if fetch.body && !fetch.alone {
            let running = book.running.entry(fetch.key()).or_default();
            let beside = running.clone();
            running.push(number);
            if !beside.is_empty() {
                book.overlaps.push(Overlap {
                    fetch: number,
                    running: beside,
                });
            }
        }
        book.of_object.entry(fetch.object).or_default().push(number);
        book.all.push(fetch);
        number
    }

    /// Records the fault that a response is about to get.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn fail(&self, number: usize, fault: Fault, at: Moment) {
        let mut book = self.0.lock().unwrap();
        let object = book.all[number].object;
        book.all[number].fault = Some((fault, at));
        book.failed.entry(object).or_default().push(number);
    }

    /// Records how a response has ended.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn end(&self, number: usize, ending: Ending, at: Moment) {
        let mut book = self.0.lock().unwrap();
        let fetch = &mut book.all[number];
        fetch.ended = (ending, at);
        let key = fetch.key();
        if let Some(running) = book.running.get_mut(&key) {
            running.retain(|&other| other != number);
        }
    }

    /// The request of this number.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<Fetch> {
        self.0.lock().unwrap().all.get(number).cloned()
    }

    /// Whether a response for an object got a fault since then for which `test` is true.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn failed(
        &self,
        object: usize,
        since: Moment,
        test: impl Fn(&Fetch, Fault) -> bool,
    ) -> bool {
        let book = self.0.lock().unwrap();
        let failed = book.failed.get(&object).into_iter().flatten().rev();
        let failed = failed.map(|&number| &book.all[number]);
        let recent = failed
            .filter_map(|fetch| fetch.fault.map(|(fault, at)| (fetch, fault, at)))
            .take_while(|(_, _, at)| *at >= since);
        recent
            .into_iter()
            .any(|(fetch, fault, _)| test(fetch, fault))
    }

    /// Whether there is a request for an object since then for which `test` is true.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn any(&self, object: usize, since: Moment, test: impl Fn(&Fetch) -> bool) -> bool {
        let book = self.0.lock().unwrap();
        let numbers = book.of_object.get(&object).into_iter().flatten().rev();
        let fetches = numbers.map(|&number| &book.all[number]);
        let mut recent = fetches.take_while(|fetch| fetch.begun >= since);
        recent.any(test)
    }

    /// The last requests for an object since then, for a message.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn recent(&self, object: usize, since: Moment) -> Vec<(usize, Fetch)> {
        let book = self.0.lock().unwrap();
        let numbered = book.all.iter().enumerate().rev();
        let recent = numbered
            .take_while(|(_, fetch)| fetch.begun >= since)
            .filter(|(_, fetch)| fetch.object == object)
            .take(6);
        recent
            .map(|(number, fetch)| (number, fetch.clone()))
            .collect()
    }

    /// All fetches, and the overlaps: fetches that ran beside others of the same key.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn all(&self) -> (Vec<Fetch>, Vec<Overlap>) {
        let book = self.0.lock().unwrap();
        (book.all.clone(), book.overlaps.clone())
    }
}
