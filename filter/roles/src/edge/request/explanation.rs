// SPDX-License-Identifier: Apache-2.0
//! The explanation of a request that is not sent: the decision that EDGE would make now, by the same functions.

use std::rc::Rc;

use sluice_core::admission::{Disposition, PassReason, RequestFacts, classify};
use sluice_core::coalescing::shared::board::FlightKey;
use sluice_core::key::{CanonicalTarget, Rejection, canonicalize};
use sluice_core::website::MissingObjectVisit;

use crate::edge::Edge;
use crate::edge::site::{https_location, is_secure};
use crate::edge::website::{self, Destination};
use crate::request::policy::NumberedPolicy;
use crate::worker::coalescing::Coalescing;
use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use crate::worker::policies::Policies;
use crate::worker::slices::KnownObjects;
use sluice_host::headers::Headers;

/// The decision about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Use of the cache, under a key with these hashes.
    Cached(FlightKey),
    /// A way around the cache, for this reason.
    Passed(PassReason),
    /// A redirect to this URL.
    Redirected(String),
    /// A refusal.
    Refused(Rejection),
}

/// A request with the decision about it.
#[derive(Debug)]
pub struct Explanation {
    /// The policy of its site, if a site takes it.
    pub policy: Option<NumberedPolicy>,
    /// The object that it requests, if its URL names one.
    pub target: Option<CanonicalTarget>,
    /// Whether a document replaces the object, which is known to be missing.
    pub replaced: bool,
    /// The decision.
    pub decision: Decision,
}

impl Explanation {
    fn without_target(policy: Option<NumberedPolicy>, decision: Decision) -> Self {
        Self {
            policy,
            target: None,
            replaced: false,
            decision,
        }
    }

    /// The decision about a GET with these headers, in the form in which EDGE receives them; `None` before the worker
    /// has its first policy.
    pub fn of(
        policies: &Policies,
        identity: &Rc<Identity>,
        keys: &mut Keys,
        slices: &mut KnownObjects,
        coalescing: &mut Coalescing,
        headers: &Headers,
    ) -> Option<Self> {
        let generation = Rc::clone(policies.newest()?);
        let target = headers.target();
        let site = match generation.sites.find(&target, || None) {
            Ok(site) => site,
            Err(rejection) => {
                return Some(Self::without_target(None, Decision::Refused(rejection)));
            }
        };
        let policy = generation.policy(site)?.clone();
        let mut edge = Edge::new(0, generation, policy.clone(), Rc::clone(identity));
        edge.site = Some(site);
        edge.is_secure = is_secure(headers);
        // The question of an operator is not checked, but its key is that of a client's request.
        let taken = edge
            .find_credentials(headers, None)
            .and_then(|taken| taken.headers);
        let explained = edge.explain(keys, slices, coalescing, taken.as_ref().unwrap_or(headers));
        Some(explained.unwrap_or_else(|decision| Self::without_target(Some(policy), decision)))
    }
}

impl Edge {
    /// Returns the decision alone as an error if the request has no object.
    fn explain(
        &self,
        keys: &mut Keys,
        slices: &mut KnownObjects,
        coalescing: &mut Coalescing,
        headers: &Headers,
    ) -> Result<Explanation, Decision> {
        let policy = &self.policy.policy;
        if self.must_use_https() {
            let target = headers.target();
            canonicalize(policy, &target).map_err(Decision::Refused)?;
            return Err(Decision::Redirected(https_location(&target)));
        }
        if let Some(redirection) = self.redirection(headers) {
            return Err(Decision::Redirected(redirection.location));
        }
        let facts = self.facts(headers, true).map_err(Decision::Refused)?;
        let target = canonicalize(policy, &facts.target);
        let target = target.map_err(|rejection| match self.root(&facts, rejection) {
            Some(location) => Decision::Redirected(location),
            None => Decision::Refused(rejection),
        })?;
        match classify(policy, &facts).map_err(Decision::Refused)? {
            Disposition::Pass(reason) => Ok(self.explained(target, Decision::Passed(reason))),
            Disposition::Preflight | Disposition::AwaitsBody => {
                Ok(self.explained(target, Decision::Passed(PassReason::Body)))
            }
            Disposition::Cacheable => {
                self.explain_visit(keys, slices, coalescing, target, headers, &facts)
            }
        }
    }

    fn explained(&self, target: CanonicalTarget, decision: Decision) -> Explanation {
        Explanation {
            policy: Some(self.policy.clone()),
            target: Some(target),
            replaced: false,
            decision,
        }
    }

    /// The decision about a cacheable request.
    fn explain_visit(
        &self,
        keys: &mut Keys,
        slices: &mut KnownObjects,
        coalescing: &mut Coalescing,
        mut target: CanonicalTarget,
        headers: &Headers,
        facts: &RequestFacts<'_>,
    ) -> Result<Explanation, Decision> {
        let policy = &self.policy.policy;
        let accept = || headers.get("accept");
        let visitor = MissingObjectVisit::of(policy, &target, facts.target.path, accept);
        let visitor = visitor.filter(|_| !facts.shows_credentials(policy));
        let destination =
            visitor.map(|visitor| website::destination(keys, policy, &visitor, &target));
        let mut replaced = false;
        match destination {
            Some(Destination::Redirect(location)) => return Err(Decision::Redirected(location)),
            Some(Destination::Document(_, document)) => {
                target = document;
                replaced = true;
            }
            Some(Destination::Requested) | None => {}
        }
        let decision = match self.find_key(keys, slices, coalescing, &mut target, headers, facts) {
            Ok(keyed) => Decision::Cached(keyed.key),
            Err(reason) => Decision::Passed(reason),
        };
        Ok(Explanation {
            replaced,
            ..self.explained(target, decision)
        })
    }
}
