// SPDX-License-Identifier: Apache-2.0
//! A value in shared data that any worker may replace, by compare-and-swap.

use crate::host::{HostError, SharedStore};

/// Attempts of one compare-and-swap. After these the value counts as unusable for now.
pub const ATTEMPTS: u32 = 32;

/// An error in the use of a shared value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedError {
    /// The host refused a call.
    Host(HostError),
    /// Other workers won every attempt.
    Contended,
}

impl From<SharedError> for HostError {
    fn from(error: SharedError) -> Self {
        match error {
            SharedError::Host(error) => error,
            SharedError::Contended => Self { status: u32::MAX },
        }
    }
}

/// Reads the shared value `key`. A missing value counts as empty.
///
/// # Errors
/// The host refused the call.
pub fn read(store: &dyn SharedStore, key: &str) -> Result<Vec<u8>, SharedError> {
    let current = store.get(key).map_err(SharedError::Host)?;
    Ok(current.map(|(bytes, _)| bytes).unwrap_or_default())
}

/// Replaces the shared value `key` by the result of `change`, unless that is `None`. A missing value counts as empty.
///
/// # Errors
/// The host refused a call, or other workers won every attempt.
pub fn update<R>(
    store: &dyn SharedStore,
    key: &str,
    change: impl FnMut(&[u8]) -> (Option<Vec<u8>>, R),
) -> Result<R, SharedError> {
    update_counting(store, key, &mut 0, change)
}

/// Updates like [`update`], and adds the number of attempts that other workers won to `conflicts`.
///
/// # Errors
/// The host refused a call, or other workers won every attempt.
pub fn update_counting<R>(
    store: &dyn SharedStore,
    key: &str,
    conflicts: &mut u32,
    mut change: impl FnMut(&[u8]) -> (Option<Vec<u8>>, R),
) -> Result<R, SharedError> {
    for _ in 0..ATTEMPTS {
        let current = store.get(key).map_err(SharedError::Host)?;
        let (bytes, token) = match current {
            Some((bytes, token)) => (bytes, Some(token)),
            None => (Vec::new(), None),
        };
        let (replacement, result) = change(&bytes);
        let Some(replacement) = replacement else {
            return Ok(result);
        };
        let written = store.compare_and_set(key, &replacement, token);
        if written.map_err(SharedError::Host)? {
            return Ok(result);
        }
        *conflicts += 1;
    }
    Err(SharedError::Contended)
}
