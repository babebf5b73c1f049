// SPDX-License-Identifier: Apache-2.0
//! A request that asks for a document in the place of an object that is known to be missing.

use sluice_core::website::Substitute;

/// The missing object whose place a document takes.
#[derive(Clone, Copy, Debug)]
pub struct StandIn {
    /// Which substitute it asks for.
    pub substitute: Substitute,
    /// The bucket's status for the missing object.
    pub missing: u16,
}

impl StandIn {
    /// Whether the client's conditions and range apply to the document.
    pub fn takes_demands(self) -> bool {
        self.substitute != Substitute::Error
    }
}
