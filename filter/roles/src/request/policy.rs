// SPDX-License-Identifier: Apache-2.0
//! The policy under which a request began.

use std::rc::Rc;

use sluice_core::access::secrets::AccessSecrets;
use sluice_core::coalescing::flight::FlightPolicy;
use sluice_core::hot::SiteNumber;
use sluice_core::policy::Policy;
use sluice_core::sites::{SiteIndex, Sites};

use super::counters::SiteCounters;

/// The policy of a site and its number within this VM.
#[derive(Clone, Debug)]
pub struct NumberedPolicy {
    /// The number of the policy, which increases with each policy that this VM has had.
    pub number: u32,
    /// The policy itself.
    pub policy: Rc<Policy>,
    /// Its settings for flights.
    pub flights: FlightPolicy,
    /// The number of its site in this VM, which does not change when sites are added or removed.
    pub site: SiteNumber,
    /// The secrets with which its site verifies clients.
    pub secrets: Rc<AccessSecrets>,
    /// The counters of its site.
    pub counters: Rc<SiteCounters>,
}

/// The sites that an edge serves under one configuration, each with its numbered policy.
#[derive(Debug)]
pub struct Generation {
    /// The sites.
    pub sites: Rc<Sites>,
    /// The policies of the sites, in their order.
    policies: Vec<NumberedPolicy>,
}

impl Generation {
    /// Creates the generation. The policies must have the order of the sites.
    pub const fn new(sites: Rc<Sites>, policies: Vec<NumberedPolicy>) -> Self {
        Self { sites, policies }
    }

    /// The policy of a site.
    pub fn policy(&self, index: SiteIndex) -> Option<&NumberedPolicy> {
        self.policies.get(index)
    }

    /// The policy of the site of that name.
    pub fn policy_of(&self, site: &str) -> Option<&NumberedPolicy> {
        self.policies.get(self.sites.named(site)?)
    }

    /// The policy of the site under which a key was made.
    pub fn policy_of_key(&self, cache_key: &str) -> Option<&NumberedPolicy> {
        self.policies.get(self.sites.index_of_key(cache_key)?)
    }

    /// The policies of the sites, in their order.
    pub fn policies(&self) -> &[NumberedPolicy] {
        &self.policies
    }
}
