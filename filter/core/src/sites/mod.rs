// SPDX-License-Identifier: Apache-2.0
//! The sites of one edge: the choice of the site for a request, and the settings of each site beside its policy.
//!
//! `document` reads the sites, and `hosts` finds the site of a host and a path.

mod document;
mod hosts;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use crate::http::url::rejection::Rejection;
use crate::key::{NAME_END, Target};
use crate::policy::purge::TokenHash;
use crate::policy::{EdgePolicy, Policy};
use hosts::Hosts;
pub use hosts::host_name;

/// The position of a site among those of its edge.
pub type SiteIndex = usize;

/// The sites of an edge, and their shared settings.
#[derive(Debug)]
pub struct Sites {
    /// The part that all sites share.
    pub edge: Rc<EdgePolicy>,
    /// The sites, in the order of the document. Not empty.
    pub sites: Vec<Site>,
    /// The positions of the sites, in the order of their names.
    by_name: Vec<SiteIndex>,
    hosts: Hosts,
}

/// One site.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its policy, which has its name.
    pub policy: Rc<Policy>,
    /// Its weight when sites compete for memory.
    pub share: u32,
    /// Whether requests over cleartext are redirected to HTTPS.
    pub redirect_to_https: bool,
    /// The value of `Strict-Transport-Security` in responses over HTTPS (RFC 6797).
    pub hsts: Option<String>,
    /// The token for purges of this site alone.
    pub purge_token: Option<TokenHash>,
}

impl Site {
    /// The one site of an edge, which takes all requests.
    pub fn only(policy: Policy) -> Self {
        Self {
            policy: Rc::new(policy),
            share: 1,
            redirect_to_https: false,
            hsts: None,
            purge_token: None,
        }
    }

    /// Its name; empty for the one site of an edge that has no name.
    pub fn name(&self) -> &str {
        &self.policy.site.name
    }
}

impl Sites {
    /// An edge with one site, which has no name and takes all requests.
    pub fn of_one(policy: Policy) -> Self {
        Self {
            edge: Rc::clone(&policy.edge),
            sites: vec![Site::only(policy)],
            by_name: vec![0],
            hosts: Hosts::for_all(),
        }
    }

    /// Finds the site of a request for `target`. `server_name` returns the name by which a client over TLS has chosen
    /// the edge's certificate (RFC 6066, 3). It is called only if there are several certificates.
    ///
    /// The site is chosen by the canonical host and path. Empty segments do not count in that spelling. If the site's
    /// own policy counts them, the path with them must belong to the same site.
    ///
    /// # Errors
    /// No site takes the request, or the request was received over a connection for other sites (RFC 9110, 15.5.20).
    pub fn find(
        &self,
        target: &Target<'_>,
        server_name: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Result<SiteIndex, Rejection> {
        match self.hosts.only() {
            Some(only) => Ok(only),
            None => self
                .hosts
                .find(target, server_name, |site| self.merges_slashes(site)),
        }
    }

    fn merges_slashes(&self, site: SiteIndex) -> bool {
        let site = self.sites.get(site);
        site.is_some_and(|site| site.policy.key.merge_slashes)
    }

    /// The sites that have a URL which begins as `target` does.
    ///
    /// # Errors
    /// The target names no host, or one that no site takes.
    pub fn below(&self, target: &Target<'_>) -> Result<Vec<SiteIndex>, Rejection> {
        match self.hosts.only() {
            Some(only) => Ok(vec![only]),
            None => self.hosts.below(target),
        }
    }

    /// The site with that name.
    pub fn named(&self, name: &str) -> Option<SiteIndex> {
        let position = self.by_name.binary_search_by(|index| {
            let site = self.sites.get(*index);
            site.map_or("", Site::name).cmp(name)
        });
        self.by_name.get(position.ok()?).copied()
    }

    /// The site whose origin has the purge feed; `None` if no feed is read.
    pub fn feed_site(&self) -> Option<SiteIndex> {
        match self.edge.purge.feed.as_ref()?.site.as_deref() {
            Some(name) => self.named(name),
            None => Some(0),
        }
    }

    /// The site of a cache key; `None` if the site no longer exists.
    pub fn index_of_key(&self, cache_key: &str) -> Option<SiteIndex> {
        match self.hosts.is_unnamed() {
            true => Some(0),
            false => self.named(cache_key.split(NAME_END).next()?),
        }
    }

    /// The policy under which a cache key was made; `None` if its site no longer exists.
    pub fn policy_of_key(&self, cache_key: &str) -> Option<&Rc<Policy>> {
        let site = self.sites.get(self.index_of_key(cache_key)?);
        site.map(|site| &site.policy)
    }

    /// Whether the edge accepts purges.
    pub fn take_purges(&self) -> bool {
        let purge = &self.edge.purge;
        purge.token.is_some()
            || purge.sns
            || self.sites.iter().any(|site| site.purge_token.is_some())
    }
}
