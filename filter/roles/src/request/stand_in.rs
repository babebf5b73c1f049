// SPDX-License-Identifier: Apache-2.0
//! A request for a document that replaces an object that is known to be missing.

use sluice_core::website::Substitute;

/// The missing object that a document replaces.
#[derive(Clone, Copy, Debug)]
pub struct StandIn {
    /// The kind of document.
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
