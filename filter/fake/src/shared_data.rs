// SPDX-License-Identifier: Apache-2.0
//! Shared data with the rules of Envoy's proxy-wasm host. It can fail on request, and counts all calls.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;

use sluice_core::host::{HostError, SharedStore, Token};
use sluice_core::workers::shared_value::ATTEMPTS;

/// Status of the host for a compare-and-swap that another worker won.
const CAS_MISMATCH: u32 = 8;
/// Status of the host for a call that failed for an internal reason.
const INTERNAL_FAILURE: u32 = 10;
/// Token that the host never returns.
const CREATE: u32 = u32::MAX;

/// Number of calls to the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Number of reads.
    pub get: u32,
    /// Number of writes, including refused ones.
    pub set: u32,
}

type Rival = Box<dyn FnOnce(&FakeSharedData)>;

/// Shared data of one process.
#[derive(Default)]
pub struct FakeSharedData {
    entries: RefCell<BTreeMap<String, (Vec<u8>, u32)>>,
    issued: Cell<u32>,
    calls: Cell<Calls>,
    failures: Cell<u32>,
    conflicts: Cell<u32>,
    rival: RefCell<Option<Rival>>,
}

impl FakeSharedData {
    /// Returns the calls so far.
    pub fn calls(&self) -> Calls {
        self.calls.get()
    }

    /// Lets the next `count` writes with a token lose against a write that changes nothing.
    pub fn lose_next(&self, count: u32) {
        self.conflicts.set(count);
    }

    /// Lets the next `count` calls fail.
    pub fn fail_next(&self, count: u32) {
        self.failures.set(count);
    }

    /// Whether the coming faults are enough to put the board out of use.
    pub fn is_faulty(&self) -> bool {
        self.conflicts.get() >= ATTEMPTS || self.failures.get() > 0
    }

    /// Calls `rival` in the next write, when the worker has read the value and has not written it yet.
    pub fn before_next_set(&self, rival: impl FnOnce(&Self) + 'static) {
        self.rival.replace(Some(Box::new(rival)));
    }

    /// Number of successful writes.
    pub fn writes(&self) -> u32 {
        self.issued.get()
    }

    /// Returns all values, by key.
    pub fn values(&self) -> Vec<(String, Vec<u8>)> {
        let entries = self.entries.borrow();
        let values = entries
            .iter()
            .map(|(key, (value, _))| (key.clone(), value.clone()));
        values.collect()
    }

    /// Sets a value exactly as `proxy_set_shared_data` does: token 0 overwrites, any token creates an absent key, and
    /// a key cannot be deleted.
    ///
    /// # Errors
    /// The token is not that of the current value.
    pub fn set(&self, key: &str, value: &[u8], token: u32) -> Result<(), HostError> {
        let mut entries = self.entries.borrow_mut();
        if let Some((_, current)) = entries.get(key)
            && token != 0
            && token != *current
        {
            return Err(HostError {
                status: CAS_MISMATCH,
            });
        }
        self.issued.update(|issued| issued + 1);
        entries.insert(key.to_owned(), (value.to_vec(), self.issued.get()));
        Ok(())
    }

    fn called(&self, change: impl FnOnce(&mut Calls)) -> Result<(), HostError> {
        let mut calls = self.calls.get();
        change(&mut calls);
        self.calls.set(calls);
        match self.failures.get() {
            0 => Ok(()),
            left => {
                self.failures.set(left - 1);
                Err(HostError {
                    status: INTERNAL_FAILURE,
                })
            }
        }
    }
}

impl SharedStore for FakeSharedData {
    fn get(&self, key: &str) -> Result<Option<(Vec<u8>, Token)>, HostError> {
        self.called(|calls| calls.get += 1)?;
        let entries = self.entries.borrow();
        Ok(entries
            .get(key)
            .map(|(value, token)| (value.clone(), Token(*token))))
    }

    fn compare_and_set(
        &self,
        key: &str,
        value: &[u8],
        token: Option<Token>,
    ) -> Result<bool, HostError> {
        self.called(|calls| calls.set += 1)?;
        if let Some(rival) = self.rival.take() {
            rival(self);
        }
        if self.conflicts.get() > 0 {
            self.conflicts.update(|conflicts| conflicts - 1);
            return Ok(false);
        }
        match self.set(key, value, token.map_or(CREATE, |token| token.0)) {
            Ok(()) => Ok(true),
            Err(HostError {
                status: CAS_MISMATCH,
            }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Debug for FakeSharedData {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FakeSharedData")
            .field("entries", &self.entries)
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_zero_overwrites_whatever_is_there() {
        let data = FakeSharedData::default();
        data.set("key", b"one", 0).unwrap();
        data.set("key", b"two", 0).unwrap();
        assert_eq!(data.get("key").unwrap(), Some((b"two".to_vec(), Token(2))));
    }

    #[test]
    fn any_token_creates_an_absent_key_and_only_the_current_one_replaces() {
        let data = FakeSharedData::default();
        assert_eq!(
            data.compare_and_set("key", b"one", Some(Token(99))),
            Ok(true)
        );
        assert_eq!(
            data.compare_and_set("key", b"two", None),
            Ok(false),
            "it exists by now"
        );
        assert_eq!(
            data.compare_and_set("key", b"two", Some(Token(1))),
            Ok(true)
        );
        assert_eq!(
            data.compare_and_set("key", b"three", Some(Token(1))),
            Ok(false)
        );
    }

    #[test]
    fn faults_come_as_often_as_asked_for() {
        let data = FakeSharedData::default();
        data.fail_next(1);
        assert!(data.get("key").is_err());
        data.lose_next(1);
        assert_eq!(data.compare_and_set("key", b"", None), Ok(false));
        assert_eq!(data.compare_and_set("key", b"", None), Ok(true));
        assert_eq!(data.calls(), Calls { get: 1, set: 2 });
        assert!(!data.is_faulty());
    }
}
