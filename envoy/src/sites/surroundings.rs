// SPDX-License-Identifier: Apache-2.0
//! What a file of sites is read in.

use std::ffi::OsString;
use std::time::SystemTime;

/// What a file of sites is read in.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Finds the environment's variables.
    pub lookup: &'a dyn Fn(&str) -> Option<OsString>,
    /// The region of sites that name none.
    pub region: &'a str,
    /// Whether a proxy in front of the edge may speak HTTPS for it.
    pub behind_proxy: bool,
    /// The time, which certificates must be valid at.
    pub now: SystemTime,
}

impl Surroundings<'_> {
    /// The value of a variable; an empty variable counts as unset.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        (self.lookup)(name).filter(|value| !value.is_empty())
    }
}
