// SPDX-License-Identifier: Apache-2.0
//! The sites as the filter's configuration has them: one policy, or what is the edge's and a list of sites.

use std::rc::Rc;

use serde_json::Value;

use super::hosts::{Claim, Conflict, Hosts};
use super::{Site, Sites};
use crate::policy::{EdgePolicy, Policy, PolicyError, SiteScope, SiteSection, SitesSection};

/// The field with the list of sites, which no policy has.
const SITES: &str = "sites";
/// The field with what is the edge's.
const EDGE: &str = "edge";

impl Sites {
    /// Reads the filter's configuration: the policy of the one site that the edge serves, or an object with the fields
    /// `edge` and `sites`.
    ///
    /// # Errors
    /// The field, its value and what is accepted.
    pub fn parse(document: &[u8]) -> Result<Self, PolicyError> {
        let value: Value = serde_json::from_slice(document)
            .map_err(|error| PolicyError::new("", format!("no JSON document: {error}")))?;
        match value.get(SITES) {
            Some(_) => Self::read(&value),
            None => Policy::of_edge(&value).map(Self::of_one),
        }
    }

    fn read(value: &Value) -> Result<Self, PolicyError> {
        let SitesSection {
            edge,
            sites: sections,
        } = SitesSection::parse(value)?;
        let edge = Rc::new(EdgePolicy::read(&edge).map_err(|error| error.within(EDGE))?);
        let mut hosts = Hosts::default();
        let mut sites = Vec::with_capacity(sections.len());
        for (index, section) in sections.iter().enumerate() {
            let within = |error: PolicyError| error.within(&format!("{SITES}[{index}]"));
            let claim = Claim {
                site: index,
                hosts: &section.hosts,
                path: &section.path,
                certificate: section.certificate.as_deref(),
            };
            let claimed = hosts.add(&claim);
            claimed.map_err(|conflict| within(refuse(&sections, section, &conflict)))?;
            sites.push(read_site(section, &edge).map_err(within)?);
        }
        hosts.complete();
        let mut by_name: Vec<_> = (0..sites.len()).collect();
        by_name.sort_by(|one, other| {
            sections
                .get(*one)
                .map(name)
                .cmp(&sections.get(*other).map(name))
        });
        if let Some([_, twin]) = by_name
            .array_windows::<2>()
            .find(|[one, other]| sections.get(*one).map(name) == sections.get(*other).map(name))
        {
            let text = sections.get(*twin).map(name).unwrap_or_default();
            let error = PolicyError::text("name", text, "a name that no other site has");
            return Err(error.within(&format!("{SITES}[{twin}]")));
        }
        if let Some((index, _)) = sites.iter().enumerate().find(|(index, site)| {
            let earlier = sites.iter().take(*index).map(|site| site.purge_token);
            site.purge_token.is_some()
                && earlier
                    .chain([edge.purge.token])
                    .any(|token| token == site.purge_token)
        }) {
            let error = PolicyError::new(
                "purge_token_sha256",
                "expected a token that nothing else has",
            );
            return Err(error.within(&format!("{SITES}[{index}]")));
        }
        Ok(Self {
            edge,
            sites,
            by_name,
            hosts,
        })
    }
}

fn name(section: &SiteSection) -> &str {
    &section.name
}

fn read_site(section: &SiteSection, edge: &Rc<EdgePolicy>) -> Result<Site, PolicyError> {
    let scope = SiteScope {
        name: section.name.clone(),
        path: section.path.clone(),
    };
    let policy = Policy::of_site(&section.policy, edge, scope);
    Ok(Site {
        policy: Rc::new(policy.map_err(|error| error.within("policy"))?),
        share: section.share,
        redirect_to_https: section.redirect_to_https,
        hsts: section.hsts.clone(),
        purge_token: section.purge_token,
    })
}

/// What is wrong with a site that claims what another has.
fn refuse(sections: &[SiteSection], section: &SiteSection, conflict: &Conflict) -> PolicyError {
    let holder = sections.get(conflict.holder).map(name).unwrap_or_default();
    let host = match conflict.host.as_str() {
        "" => "all other hosts",
        host => host,
    };
    if conflict.by_certificate {
        let shown = section.certificate.as_deref().unwrap_or("none");
        let expected = format!("the certificate of the site {holder}, which has {host} too");
        return PolicyError::text("certificate", shown, &expected);
    }
    let expected = format!("another path than that of the site {holder}, which has {host} too");
    PolicyError::text("path", &section.path, &expected)
}
