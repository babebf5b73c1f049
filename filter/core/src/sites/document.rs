// SPDX-License-Identifier: Apache-2.0
//! The sites in the filter's configuration: one policy, or the edge's part and a list of sites.

use std::collections::HashSet;
use std::rc::Rc;

use serde_json::Value;

use super::hosts::{Conflict, HostClaim, Hosts};
use super::{Site, SiteIndex, Sites};
use crate::policy::{
    EdgePolicy, HttpsSection, Policy, PolicyError, SiteScope, SiteSection, SitesSection,
    configuration,
};

/// The field with the list of sites, which no policy has.
const SITES: &str = "sites";
/// The field with the edge's part.
const EDGE: &str = "edge";

impl Sites {
    /// Reads the filter's configuration: the policy of the one site that the edge serves, with the field `https` beside
    /// it, or an object with the fields `edge` and `sites`.
    ///
    /// # Errors
    /// The field, its value and the accepted values.
    pub fn parse(document: &[u8]) -> Result<Self, PolicyError> {
        let mut value = configuration::read(document)?;
        if value.get(SITES).is_some() {
            return Self::read(&value);
        }
        let https = HttpsSection::take(&mut value)?;
        let mut sites = Self::of_one(Policy::of_edge(&value)?);
        for site in &mut sites.sites {
            site.redirect_to_https = https.redirect;
            site.hsts.clone_from(&https.hsts);
        }
        Ok(sites)
    }

    fn read(value: &Value) -> Result<Self, PolicyError> {
        let SitesSection {
            edge,
            sites: sections,
        } = SitesSection::parse(value)?;
        let edge = Rc::new(EdgePolicy::read(&edge).map_err(|error| error.within(EDGE))?);
        let names: Vec<&str> = sections.iter().map(name).collect();
        let checked = edge.purge.check(&names);
        checked.map_err(|error| error.within(EDGE))?;
        let mut hosts = Hosts::default();
        let mut sites = Vec::with_capacity(sections.len());
        for (index, section) in sections.iter().enumerate() {
            let within = |error: PolicyError| error.within(&format!("{SITES}[{index}]"));
            let claim = HostClaim {
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
        check_tokens(&edge, &sites)?;
        Ok(Self {
            by_name: by_name(&sections)?,
            edge,
            sites,
            hosts,
        })
    }
}

/// The positions of the sites, in the order of their names.
fn by_name(sections: &[SiteSection]) -> Result<Vec<SiteIndex>, PolicyError> {
    let mut named: Vec<_> = sections.iter().map(name).zip(0..).collect();
    named.sort_unstable();
    let twins = named.iter().zip(named.iter().skip(1));
    if let Some((_, (name, index))) = twins.into_iter().find(|(one, other)| one.0 == other.0) {
        let error = PolicyError::text("name", name, "a name that no other site has");
        return Err(error.within(&format!("{SITES}[{index}]")));
    }
    Ok(named.into_iter().map(|(_, index)| index).collect())
}

/// Checks that a token belongs to only one site, or to the edge.
fn check_tokens(edge: &EdgePolicy, sites: &[Site]) -> Result<(), PolicyError> {
    let mut seen: HashSet<String> = edge
        .purge
        .token
        .iter()
        .map(|token| token.to_hex())
        .collect();
    for (index, site) in sites.iter().enumerate() {
        if site
            .purge_token
            .is_some_and(|token| !seen.insert(token.to_hex()))
        {
            let expected = "expected a token that nothing else has";
            let error = PolicyError::new("purge_token_sha256", expected);
            return Err(error.within(&format!("{SITES}[{index}]")));
        }
    }
    Ok(())
}

fn name(section: &SiteSection) -> &str {
    &section.name
}

fn read_site(section: &SiteSection, edge: &Rc<EdgePolicy>) -> Result<Site, PolicyError> {
    let scope = SiteScope {
        name: section.name.clone(),
        path: section.path.clone(),
        is_labelled: section.labelled,
        server: section
            .server
            .clone()
            .unwrap_or_else(|| section.name.clone()),
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

/// The error for a site that claims a host or path of another site.
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
