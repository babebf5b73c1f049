// SPDX-License-Identifier: Apache-2.0
//! The policies under which this worker has requests.

use std::hash::{DefaultHasher, Hasher as _};
use std::rc::Rc;

use sluice_core::access::secrets::AccessSecrets;
use sluice_core::coalescing::flight::FlightPolicy;
use sluice_core::hot::SiteNumber;
use sluice_core::key::NAME_END;
use sluice_core::policy::Policy;
use sluice_core::sites::Sites;
use sluice_core::workers::NumberMap;

use crate::request::counters::SiteCounters;
use crate::request::policy::{Generation, NumberedPolicy};

/// The policies of the newest configuration, and those of former ones that requests still use.
#[derive(Debug, Default)]
pub struct Policies {
    newest: Option<Rc<Generation>>,
    /// The hash of the newest configuration. Every root context of the worker gets that configuration.
    configuration: u64,
    known: NumberMap<u32, NumberedPolicy>,
    /// The names of all sites, past ones included, by their numbers.
    names: Vec<String>,
    last: u32,
}

impl Policies {
    /// Installs the sites of the newest configuration, and forgets the policies that nothing uses any more. A site
    /// whose policy has not changed keeps its number and what is stored under that number. `secrets` are
    /// those of the sites, in their order.
    pub fn renew(
        &mut self,
        configuration: &[u8],
        mut sites: Sites,
        secrets: Vec<AccessSecrets>,
    ) -> Rc<Generation> {
        // Root contexts and requests that began under a policy keep a reference to it.
        let former = self.newest.take();
        let mut policies = Vec::with_capacity(sites.sites.len());
        for (site, secrets) in sites.sites.iter_mut().zip(secrets) {
            let known = former.as_ref();
            let known = known.and_then(|former| former.policy_of(site.name()));
            let numbered = match known.filter(|known| known.policy == site.policy) {
                Some(known) => known.clone(),
                None => self.number(&site.policy, secrets),
            };
            site.policy = Rc::clone(&numbered.policy);
            policies.push(numbered);
        }
        drop(former);
        self.known
            .retain(|_, known| Rc::strong_count(&known.policy) > 1);
        let numbered = policies
            .iter()
            .map(|policy| (policy.number, policy.clone()));
        self.known.extend(numbered);
        let generation = Rc::new(Generation::new(Rc::new(sites), policies));
        self.newest = Some(Rc::clone(&generation));
        self.configuration = hash(configuration);
        generation
    }

    /// The sites of the newest configuration, if `configuration` is the newest.
    pub fn of(&self, configuration: &[u8]) -> Option<Rc<Generation>> {
        let newest = self.newest.clone();
        newest.filter(|_| self.configuration == hash(configuration))
    }

    /// The newest configuration.
    pub fn newest(&self) -> Option<&Rc<Generation>> {
        self.newest.as_ref()
    }

    /// The policy of that number, unless it has been forgotten.
    pub fn get(&self, number: u32) -> Option<&NumberedPolicy> {
        self.known.get(&number)
    }

    /// The policy of the site under which a key was made. Requests for the key may outlive the site.
    pub fn of_key(&self, cache_key: &str) -> Option<&NumberedPolicy> {
        let newest = self.newest.as_ref();
        newest
            .and_then(|newest| newest.policy_of_key(cache_key))
            .or_else(|| {
                let (site, _) = cache_key.split_once(NAME_END)?;
                let mut known = self.known.values();
                known.find(|known| known.policy.site.name == site)
            })
    }

    /// The weights of the sites, by their numbers. A removed site has the weight 0.
    pub fn shares(&self) -> Vec<u32> {
        let mut shares = vec![0; self.names.len()];
        let newest = self.newest.iter();
        let sites = newest.flat_map(|newest| newest.sites.sites.iter().zip(newest.policies()));
        for (site, policy) in sites {
            if let Some(share) = shares.get_mut(usize::from(policy.site.0)) {
                *share = site.share;
            }
        }
        shares
    }

    /// The number of the site of that name. A site that is configured again gets its old number.
    fn site(&mut self, name: &str) -> SiteNumber {
        let known = self.names.iter().position(|known| known == name);
        let position = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        SiteNumber(u16::try_from(position).unwrap_or(u16::MAX))
    }

    fn number(&mut self, policy: &Rc<Policy>, secrets: AccessSecrets) -> NumberedPolicy {
        self.last = self.last.wrapping_add(1);
        NumberedPolicy {
            site: self.site(&policy.site.name),
            number: self.last,
            policy: Rc::clone(policy),
            flights: FlightPolicy::of(policy),
            secrets: Rc::new(secrets),
            counters: Rc::new(SiteCounters::new(&policy.site)),
        }
    }
}

fn hash(configuration: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(configuration);
    hasher.finish()
}
