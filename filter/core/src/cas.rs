// SPDX-License-Identifier: Apache-2.0
//! The loop around a compare-and-swap.

use crate::board::{ATTEMPTS, BoardError};
use crate::host::SharedStore;

/// Replaces the shared value `key` (an absent one is empty) by what `change` makes of it, unless that is
/// `None`.
pub(crate) fn update<S: SharedStore + ?Sized, R>(
    store: &mut S,
    key: &str,
    mut change: impl FnMut(&[u8]) -> (Option<Vec<u8>>, R),
) -> Result<R, BoardError> {
    for _ in 0..ATTEMPTS {
        let current = store.get(key).map_err(BoardError::Host)?;
        let (bytes, token) = match current {
            Some((bytes, token)) => (bytes, Some(token)),
            None => (Vec::new(), None),
        };
        let (replacement, result) = change(&bytes);
        let Some(replacement) = replacement else {
            return Ok(result);
        };
        let written = store.compare_and_set(key, &replacement, token);
        if written.map_err(BoardError::Host)? {
            return Ok(result);
        }
    }
    Err(BoardError::Contended)
}

/// The shared value `key`; an absent one is empty.
pub(crate) fn read<S: SharedStore + ?Sized>(store: &S, key: &str) -> Result<Vec<u8>, BoardError> {
    let current = store.get(key).map_err(BoardError::Host)?;
    Ok(current.map(|(bytes, _)| bytes).unwrap_or_default())
}
