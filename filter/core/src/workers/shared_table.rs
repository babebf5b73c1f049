// SPDX-License-Identifier: Apache-2.0
//! A table in shared data: a fixed number of slots. Each slot is a separate value, so that workers rarely contend for
//! one, and the set of names is bounded, because shared data never deletes a name.

use std::marker::PhantomData;

use super::shared_value::{self, SharedError};
use crate::host::SharedStore;

/// The content of a slot.
pub trait SharedRecord: Clone + Default + PartialEq {
    /// Reads bytes of [`SharedRecord::encode`]; `None` for other bytes. Other bytes are possible, because in Istio
    /// all plugins without a `vm_id` share one namespace, and because shared data outlives a module that is replaced.
    fn decode(bytes: &[u8]) -> Option<Self>;

    /// Writes the record.
    fn encode(&self) -> Vec<u8>;
}

/// A table of `slots` records, which are empty until they are changed. A record that does not decode counts as empty.
#[derive(Debug)]
pub struct SharedTable<'a, R> {
    store: &'a dyn SharedStore,
    name: &'static str,
    slots: u64,
    /// Compare-and-swaps that other workers won.
    pub conflicts: u32,
    record: PhantomData<R>,
}

impl<'a, R: SharedRecord> SharedTable<'a, R> {
    /// The table with that name in `store`.
    pub fn new(store: &'a dyn SharedStore, name: &'static str, slots: u64) -> Self {
        Self {
            store,
            name,
            slots,
            conflicts: 0,
            record: PhantomData,
        }
    }

    /// Reads the record in the slot of `number`.
    ///
    /// # Errors
    /// The host refused the call.
    pub fn read(&self, number: u64) -> Result<R, SharedError> {
        let bytes = shared_value::read(self.store, &self.slot(number))?;
        Ok(R::decode(&bytes).unwrap_or_default())
    }

    /// Changes the record in the slot of `number`. Calls `change` again if another worker was faster.
    ///
    /// # Errors
    /// The host refused a call, or other workers were faster too often.
    pub fn change<T>(
        &mut self,
        number: u64,
        mut change: impl FnMut(&mut R) -> T,
    ) -> Result<T, SharedError> {
        let slot = self.slot(number);
        shared_value::update_counting(self.store, &slot, &mut self.conflicts, |bytes| {
            let before = R::decode(bytes).unwrap_or_default();
            let mut after = before.clone();
            let result = change(&mut after);
            ((after != before).then(|| after.encode()), result)
        })
    }

    fn slot(&self, number: u64) -> String {
        format!("{}/{}", self.name, number % self.slots)
    }
}
