// SPDX-License-Identifier: Apache-2.0
//! Which workers have served a request, and must therefore hear of every purge.

use crate::host::SharedStore;
use crate::workers::WorkerId;
use crate::workers::shared_value;
use crate::workers::shared_value::SharedError;

const KEY: &str = "sluice/roster";

/// The workers' list in shared data. A worker joins before its first request and reads the purges after
/// it has joined; whoever purges writes them before it reads the list. So no worker can miss one.
#[derive(Debug)]
pub struct Roster<'a> {
    store: &'a dyn SharedStore,
}

impl<'a> Roster<'a> {
    /// The list in `store`.
    pub fn new(store: &'a dyn SharedStore) -> Self {
        Self { store }
    }

    /// Puts a worker on the list; false if it was there.
    ///
    /// # Errors
    /// The host refused a call, or other workers were faster too often.
    pub fn join(&mut self, worker: WorkerId) -> Result<bool, SharedError> {
        self.update(|members| {
            let joins = !members.contains(&worker);
            if joins {
                members.push(worker);
            }
            joins
        })
    }

    /// Takes workers off the list whose VMs have died, as it seems. One that lives joins again.
    ///
    /// # Errors
    /// As [`Roster::join`].
    pub fn expel(&mut self, workers: &[WorkerId]) -> Result<(), SharedError> {
        self.update(|members| members.retain(|member| !workers.contains(member)))
    }

    /// Everyone on it.
    ///
    /// # Errors
    /// The host refused the call.
    pub fn members(&self) -> Result<Vec<WorkerId>, SharedError> {
        Ok(decode(&shared_value::read(self.store, KEY)?))
    }

    fn update<R>(&mut self, change: impl Fn(&mut Vec<WorkerId>) -> R) -> Result<R, SharedError> {
        shared_value::update(self.store, KEY, |bytes| {
            let before = decode(bytes);
            let mut after = before.clone();
            let result = change(&mut after);
            let encoded = after.iter().flat_map(|id| id.0.to_le_bytes()).collect();
            ((after != before).then_some(encoded), result)
        })
    }
}

fn decode(bytes: &[u8]) -> Vec<WorkerId> {
    let (members, _) = bytes.as_chunks::<2>();
    members
        .iter()
        .map(|bytes| WorkerId(u16::from_le_bytes(*bytes)))
        .collect()
}
