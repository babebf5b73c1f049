// SPDX-License-Identifier: Apache-2.0
//! The roster: the workers that have served a request, and must therefore receive every purge.

use crate::host::SharedStore;
use crate::workers::WorkerId;
use crate::workers::shared_value;
use crate::workers::shared_value::SharedError;

const KEY: &str = "sluice/roster";

/// The workers' list in shared data. A worker joins before its first request, and reads the purges after it has
/// joined. A worker that purges writes the purges first and reads the list afterwards. So no worker can miss a purge.
#[derive(Debug)]
pub struct Roster<'a> {
    store: &'a dyn SharedStore,
}

impl<'a> Roster<'a> {
    /// The list in `store`.
    pub fn new(store: &'a dyn SharedStore) -> Self {
        Self { store }
    }

    /// Adds a worker to the list. Returns false if it is on the list already.
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

    /// Removes workers from the list whose VMs seem to have died. A worker that lives joins again.
    ///
    /// # Errors
    /// As [`Roster::join`].
    pub fn expel(&mut self, workers: &[WorkerId]) -> Result<(), SharedError> {
        self.update(|members| members.retain(|member| !workers.contains(member)))
    }

    /// The workers on the list.
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
