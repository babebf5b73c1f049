// SPDX-License-Identifier: Apache-2.0
//! The policies under which this worker has requests.

use std::collections::VecDeque;
use std::rc::Rc;

use sluice_core::coalescing::flight::FlightPolicy;
use sluice_core::policy::Policy;

use crate::request::policy::NumberedPolicy;

/// The policies, the newest last.
#[derive(Debug, Default)]
pub struct Policies {
    known: VecDeque<NumberedPolicy>,
}

impl Policies {
    /// Adds the newest policy, and forgets those under which nothing is any more.
    pub fn add(&mut self, policy: Rc<Policy>) -> NumberedPolicy {
        let last = self.known.back();
        let number = last.map_or(1, |last| last.number.wrapping_add(1));
        let flights = FlightPolicy::of(&policy);
        let added = NumberedPolicy {
            number,
            policy,
            flights,
        };
        // Root contexts and requests that came under a policy keep it.
        self.known
            .retain(|known| Rc::strong_count(&known.policy) > 1);
        self.known.push_back(added.clone());
        added
    }

    /// The newest policy.
    pub fn newest(&self) -> Option<&NumberedPolicy> {
        self.known.back()
    }

    /// The policy of that number, if it is not long gone.
    pub fn get(&self, number: u32) -> Option<&NumberedPolicy> {
        self.known.iter().find(|policy| policy.number == number)
    }
}
