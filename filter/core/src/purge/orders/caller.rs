// SPDX-License-Identifier: Apache-2.0
//! Whose purges a caller may order: those of the whole edge, or of one site.

use crate::key::secret::StoreSecret;
use crate::key::{Rejection, Target, split_absolute};
use crate::policy::Policy;
use crate::policy::purge::Scope;
use crate::purge::orders::order_error::OrderError;
use crate::purge::orders::url;
use crate::purge::orders::url::UrlError;
use crate::sites::{SiteIndex, Sites};

/// A caller, by the token that it has shown.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    sites: &'a Sites,
    /// The one site whose purges it may order; `None` for all of them.
    site: Option<SiteIndex>,
    /// The secret of the hashes of URLs and surrogate keys.
    secret: &'a StoreSecret,
}

impl<'a> Caller<'a> {
    /// A caller that may purge what any site has.
    pub const fn of_edge(sites: &'a Sites, secret: &'a StoreSecret) -> Self {
        Self {
            sites,
            site: None,
            secret,
        }
    }

    /// A caller that may purge what one site has.
    pub const fn of_site(sites: &'a Sites, site: SiteIndex, secret: &'a StoreSecret) -> Self {
        Self {
            sites,
            site: Some(site),
            secret,
        }
    }

    /// What a purge of a URL covers, as [`crate::purge::url_of`] gives it.
    pub fn scope_of(&self, url: &str) -> Scope {
        Scope::of_url(url, self.secret)
    }

    pub(in crate::purge) const fn secret(&self) -> &'a StoreSecret {
        self.secret
    }

    /// The caller as one of the site of that name.
    ///
    /// # Errors
    /// There is no such site, or the caller is another one's.
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

    /// The policy of the only site that the order can be about.
    pub(in crate::purge) fn policy(&self) -> Option<&'a Policy> {
        let site = match (self.site, self.sites.sites.as_slice()) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(site), sites) => sites.get(site),
        };
        site.map(|site| &*site.policy)
    }

    /// The policies of the sites that the caller may purge.
    pub(in crate::purge) fn policies(&self) -> impl Iterator<Item = &'a Policy> {
        let sites = self.sites.sites.iter().enumerate();
        let mine = self.site;
        let sites = sites.filter(move |(index, _)| mine.is_none_or(|site| site == *index));
        sites.map(|(_, site)| &*site.policy)
    }

    /// All that the caller may purge.
    pub(in crate::purge) fn everything(&self) -> Scope {
        let policy = self.policy();
        policy.map_or(Scope::Everything, |policy| Scope::all_of(&policy.site.name))
    }

    /// The URL that `text` stands for.
    pub(in crate::purge) fn url(&self, text: &str) -> Result<String, UrlError> {
        let policy = match target_of(text) {
            Some(target) => self.policy_at(self.sites.find(&target, || None))?,
            None => self.policy().ok_or(UrlError::Form)?,
        };
        url::parse_url(policy, text)
    }

    /// What all URLs begin with that begin as `text` does, for each site that has some.
    pub(in crate::purge) fn prefixes(&self, text: &str) -> Result<Vec<String>, UrlError> {
        let Some(target) = target_of(text) else {
            let policy = self.policy().ok_or(UrlError::Form)?;
            return url::parse_prefix(policy, text).map(|prefix| vec![prefix]);
        };
        let below = self.sites.below(&target).map_err(UrlError::Rejected)?;
        let (mut prefixes, mut refused) = (Vec::new(), Rejection::NoSite);
        for site in below.into_iter().filter(|site| self.may_purge(*site)) {
            match url::parse_prefix(self.policy_at(Ok(site))?, text) {
                // The site serves nothing that begins so, and another one may.
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

    /// What [`Self::url`] accepts.
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

/// The target of a text that is a whole URL.
fn target_of(text: &str) -> Option<Target<'_>> {
    let (scheme, authority, path) = split_absolute(text.as_bytes())?;
    Some(Target {
        scheme: Some(scheme),
        authority,
        path: if path.is_empty() { b"/" } else { path },
    })
}
