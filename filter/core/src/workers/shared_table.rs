// SPDX-License-Identifier: Apache-2.0
//! A table in shared data: a fixed number of slots, each a value of its own, so that workers contend for few keys only
//! and the set of names is bounded (shared data forgets none).

use std::marker::PhantomData;

use super::shared_value::{self, SharedError};
use crate::host::SharedStore;

/// What a slot holds.
pub trait SharedRecord: Clone + Default + PartialEq {
    /// Reads what [`SharedRecord::encode`] has written; `None` for anything else. In Istio all plugins without a
    /// `vm_id` share one namespace, and shared data outlives a module that is replaced, so other bytes may be there.
    fn decode(bytes: &[u8]) -> Option<Self>;

    /// Writes the record.
    fn encode(&self) -> Vec<u8>;
}

/// A table of `slots` records, which are empty until they are changed. What does not decode is empty.
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
    /// The table of that name in `store`.
    pub fn new(store: &'a dyn SharedStore, name: &'static str, slots: u64) -> Self {
        Self {
            store,
            name,
            slots,
            conflicts: 0,
            record: PhantomData,
        }
    }

    /// The record that `number` leads to.
    ///
    /// # Errors
    /// The host refused the call.
    pub fn read(&self, number: u64) -> Result<R, SharedError> {
        let bytes = shared_value::read(self.store, &self.slot(number))?;
        Ok(R::decode(&bytes).unwrap_or_default())
    }

    /// Changes the record that `number` leads to. `change` runs again when another worker was faster.
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
