// SPDX-License-Identifier: Apache-2.0
//! What the core needs of its host, split by role so that a test supplies only what it uses.

use std::fmt;

/// A host call that failed with this proxy-wasm status.
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

/// Stands for one version of a shared value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub u32);

/// Key-value data that all workers of one Envoy share (proxy-wasm shared data).
///
/// There is no way to delete a key, so the set of keys that are ever used must be bounded.
pub trait SharedStore: fmt::Debug {
    /// The value and its version, or `None` where the key was never set.
    ///
    /// # Errors
    /// The host call failed.
    fn get(&self, key: &str) -> Result<Option<(Vec<u8>, Token)>, HostError>;

    /// Replaces the version that `token` stands for, or creates the key where it is `None`.
    /// False when another worker was faster.
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
