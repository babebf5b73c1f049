// SPDX-License-Identifier: Apache-2.0
//! The host's functions that the core needs, split by role so that a test supplies only the ones it uses.

use std::fmt;

/// Failure of a host call, with its proxy-wasm status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostError {
    /// The proxy-wasm ABI status.
    pub status: u32,
}

impl fmt::Display for HostError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "proxy-wasm status {}", self.status)
    }
}

/// Version of a shared value, for [`SharedStore::compare_and_set`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub u32);

/// Key-value data that all workers of one Envoy share (proxy-wasm shared data).
///
/// Keys cannot be deleted, so the set of keys that are ever used must be bounded.
pub trait SharedStore: fmt::Debug {
    /// Returns the value and its version, or `None` if the key was never set.
    ///
    /// # Errors
    /// The host call failed.
    fn get(&self, key: &str) -> Result<Option<(Vec<u8>, Token)>, HostError>;

    /// Replaces the version `token`, or creates the key if `token` is `None`. Returns false if another worker was
    /// faster.
    ///
    /// # Errors
    /// The host call failed.
    fn compare_and_set(
        &self,
        key: &str,
        value: &[u8],
        token: Option<Token>,
    ) -> Result<bool, HostError>;
}
