// SPDX-License-Identifier: Apache-2.0
//! The policy under which a request has come.

use std::rc::Rc;

use sluice_core::coalescing::flight::FlightPolicy;
use sluice_core::policy::Policy;

/// A policy and its number within this VM.
#[derive(Clone, Debug)]
pub struct NumberedPolicy {
    /// Counts the policies that this VM has had.
    pub number: u32,
    /// The policy itself.
    pub policy: Rc<Policy>,
    /// Its settings for flights.
    pub flights: FlightPolicy,
}
