// SPDX-License-Identifier: Apache-2.0
//! The caller of a purge, who may purge the whole edge or one site.

use crate::key::secret::StoreSecret;
use crate::key::{Rejection, Target, split_absolute};
use crate::policy::Policy;
use crate::policy::purge::Scope;
use crate::purge::orders::order_error::OrderError;
use crate::purge::orders::url;
use crate::purge::orders::url::UrlError;
use crate::sites::{SiteIndex, Sites};

/// Caller, identified by its token.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    sites: &'a Sites,
    /// Site that the caller may purge; `None` for all sites.
    site: Option<SiteIndex>,
    /// Secret of the hashes of URLs and surrogate keys.
    secret: &'a StoreSecret,
}

impl<'a> Caller<'a> {
    /// Returns a caller that may purge all sites.
    pub const fn of_edge(sites: &'a Sites, secret: &'a StoreSecret) -> Self {
        Self {
            sites,
            site: None,
            secret,
        }
    }

    /// Returns a caller that may purge one site.
    pub const fn of_site(sites: &'a Sites, site: SiteIndex, secret: &'a StoreSecret) -> Self {
        Self {
            sites,
            site: Some(site),
            secret,
        }
    }

    /// Returns the scope of a purge of a URL, in the form of [`crate::purge::url_of`].
    pub fn scope_of(&self, url: &str) -> Scope {
        Scope::of_url(url, self.secret)
    }

    pub(in crate::purge) const fn secret(&self) -> &'a StoreSecret {
        self.secret
    }

    /// Returns the caller limited to the site of this name.
    ///
    /// # Errors
    /// No site has this name, or the caller may purge another site only.
    pub(in crate::purge) fn for_site(self, name: &str) -> Result<Self, OrderError> {
        let found = self.sites.named(name);
        let found = found.filter(|found| self.site.is_none_or(|site| site == *found));
        let site = found.ok_or_else(|| {
            let expected = match self.policy() {
                Some(policy) => format!("{}, as the token is for that site", policy.site.name),
                None => "the name of a site".to_owned(),
            };
            OrderError::new("site", &format!("{name:?}: expected {expected}"))
        })?;
        Ok(Self {
            site: Some(site),
            ..self
        })
    }

    /// Returns the policy of the site, if the order can be about one site only.
    pub(in crate::purge) fn policy(&self) -> Option<&'a Policy> {
        let site = match (self.site, self.sites.sites.as_slice()) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(site), sites) => sites.get(site),
        };
        site.map(|site| &*site.policy)
    }

    /// Iterates over the sites that the caller may purge, with their policies.
    pub(in crate::purge) fn policies(&self) -> impl Iterator<Item = (SiteIndex, &'a Policy)> {
        let sites = self.sites.sites.iter().enumerate();
        let mine = self.site;
        let sites = sites.filter(move |(index, _)| mine.is_none_or(|site| site == *index));
        sites.map(|(index, site)| (index, &*site.policy))
    }

    /// Returns the scope of everything that the caller may purge.
    pub(in crate::purge) fn everything(&self) -> Scope {
        let policy = self.policy();
        policy.map_or(Scope::Everything, |policy| Scope::all_of(&policy.site.name))
    }

    /// Returns the URL that `text` names.
    pub(in crate::purge) fn url(&self, text: &str) -> Result<String, UrlError> {
        let policy = match target_of(text) {
            Some(target) => self.policy_at(self.sites.find(&target, || None))?,
            None => self.policy().ok_or(UrlError::Form)?,
        };
        url::parse_url(policy, text)
    }

    /// Returns the prefixes of the URLs that begin like `text`, one for each site that has such URLs.
    pub(in crate::purge) fn prefixes(&self, text: &str) -> Result<Vec<String>, UrlError> {
        let Some(target) = target_of(text) else {
            let policy = self.policy().ok_or(UrlError::Form)?;
            return url::parse_prefix(policy, text).map(|prefix| vec![prefix]);
        };
        let below = self.sites.below(&target).map_err(UrlError::Rejected)?;
        let (mut prefixes, mut refused) = (Vec::new(), Rejection::NoSite);
        for site in below.into_iter().filter(|site| self.may_purge(*site)) {
            match url::parse_prefix(self.policy_at(Ok(site))?, text) {
                // This site has no URL with this prefix, but another site may have one.
                Err(UrlError::Rejected(none @ (Rejection::NoObject | Rejection::NoSite))) => {
                    refused = none;
                }
                prefix => prefixes.push(prefix?),
            }
        }
        match prefixes.is_empty() {
            true => Err(UrlError::Rejected(refused)),
            false => Ok(prefixes),
        }
    }

    /// Description of the texts that [`Self::url`] accepts.
    pub(in crate::purge) fn accepted(&self) -> String {
        match self.policy() {
            Some(policy) if !policy.site.name.is_empty() => {
                format!("{} of the site {}", url::accepted(policy), policy.site.name)
            }
            Some(policy) => url::accepted(policy).to_owned(),
            None => url::WITH_HOST.to_owned(),
        }
    }

    fn may_purge(&self, site: SiteIndex) -> bool {
        self.site.is_none_or(|mine| mine == site)
    }

    fn policy_at(&self, found: Result<SiteIndex, Rejection>) -> Result<&'a Policy, UrlError> {
        let found = found.map_err(UrlError::Rejected)?;
        let site = self.sites.sites.get(found);
        let site = site.filter(|_| self.may_purge(found));
        let site = site.ok_or(UrlError::Rejected(Rejection::NoSite))?;
        Ok(&site.policy)
    }
}

/// Returns the target of a text that is a whole URL.
fn target_of(text: &str) -> Option<Target<'_>> {
    let (scheme, authority, path) = split_absolute(text.as_bytes())?;
    Some(Target {
        scheme: Some(scheme),
        authority,
        path: if path.is_empty() { b"/" } else { path },
    })
}
