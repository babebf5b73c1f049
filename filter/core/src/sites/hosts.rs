// SPDX-License-Identifier: Apache-2.0
//! The site for a host and a path.

use std::collections::HashMap;

use super::SiteIndex;
use crate::http::url::authority::append_authority;
use crate::http::url::escaping::{Escaping, append_path};
use crate::http::url::rejection::Rejection;
use crate::key::{Target, is_below, split_absolute};

/// The hosts of all sites.
#[derive(Debug, Default)]
pub struct Hosts {
    /// Hosts by their names.
    exact: HashMap<String, Host>,
    /// Hosts by the part of their names behind the first label, with its dot.
    wildcard: HashMap<String, Host>,
    /// All other hosts.
    others: Option<Host>,
    /// Whether the hosts have different certificates.
    has_certificates: bool,
    /// The one site of the edge, if it takes every request.
    only: Option<SiteIndex>,
    /// Whether the one site of the edge has no name.
    is_unnamed: bool,
}

/// The sites of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Host {
    /// The certificate of its connections.
    certificate: Option<String>,
    /// The beginnings of paths and their sites, the longest first.
    paths: Vec<(String, SiteIndex)>,
}

/// The hosts and paths that one site takes.
pub struct HostClaim<'a> {
    /// The site's position.
    pub site: SiteIndex,
    /// The site's hosts: names, or `*.` and the part behind the first label. Empty: all other hosts.
    pub hosts: &'a [String],
    /// The beginning of the site's paths, whole segments; empty for all.
    pub path: &'a str,
    /// The certificate of the site's hosts.
    pub certificate: Option<&'a str>,
}

/// Conflict between the claims of two sites.
#[derive(Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The host, empty for all others.
    pub host: String,
    /// The site that has it.
    pub holder: SiteIndex,
    /// Whether the certificates differ; else the paths are equal.
    pub by_certificate: bool,
}

impl Hosts {
    /// Hosts of an edge with one site, which has no name and takes every request.
    pub fn for_all() -> Self {
        Self {
            only: Some(0),
            is_unnamed: true,
            ..Self::default()
        }
    }

    /// The one site, if it takes every request.
    pub const fn only(&self) -> Option<SiteIndex> {
        self.only
    }

    /// Whether the edge has one site, without a name.
    pub const fn is_unnamed(&self) -> bool {
        self.is_unnamed
    }

    /// Adds the claim of a site.
    ///
    /// # Errors
    /// Another site has claimed the same path of a host, or another certificate for it.
    pub fn add(&mut self, claim: &HostClaim<'_>) -> Result<(), Conflict> {
        if claim.hosts.is_empty() {
            let host = self.others.get_or_insert_default();
            return host.add(claim).map_err(|conflict| conflict.of(""));
        }
        for name in claim.hosts {
            let host = match name.strip_prefix('*') {
                Some(suffix) => self.wildcard.entry(suffix.to_owned()),
                None => self.exact.entry(name.clone()),
            };
            let added = host.or_default().add(claim);
            added.map_err(|conflict| conflict.of(name))?;
        }
        Ok(())
    }

    /// Completes the table after the last claim.
    pub fn complete(&mut self) {
        let hosts = || {
            self.exact
                .values()
                .chain(self.wildcard.values())
                .chain(&self.others)
        };
        let mut certificates = hosts().map(|host| &host.certificate);
        let first = certificates.next();
        self.has_certificates = certificates.any(|other| Some(other) != first);
        let takes_all = self.exact.is_empty() && self.wildcard.is_empty();
        self.only = self.others.iter().find_map(|host| match &*host.paths {
            [(path, site)] if takes_all && path.is_empty() => Some(*site),
            _ => None,
        });
    }

    /// The site of a target; see [`super::Sites::find`]. `merges_slashes` returns whether a site's policy reads `//`
    /// in a path as one separator.
    pub fn find(
        &self,
        target: &Target<'_>,
        server_name: impl FnOnce() -> Option<Vec<u8>>,
        merges_slashes: impl FnOnce(SiteIndex) -> bool,
    ) -> Result<SiteIndex, Rejection> {
        let name = host_name(target)?;
        let host = self.host(&name).ok_or(Rejection::Misdirected)?;
        // NB: a client can name any scheme in an absolute URL, or in HTTP/2.
        if self.has_certificates
            && let Some(server_name) = server_name()
            && self.certificate(&server_name) != host.certificate.as_deref()
        {
            return Err(Rejection::Misdirected);
        }
        match &*host.paths {
            [(path, site)] if path.is_empty() => Ok(*site),
            _ => {
                let found = host.holder(&canonical_path(target, true)?);
                let found = found.ok_or(Rejection::NoSite)?;
                // The site's origin gets the empty segments, and must not find another site's objects by them.
                let is_same = !has_empty_segments(target)
                    || merges_slashes(found)
                    || host.holder(&canonical_path(target, false)?) == Some(found);
                is_same.then_some(found).ok_or(Rejection::NoSite)
            }
        }
    }

    /// The sites that have a URL which begins as `target` does.
    pub fn below(&self, target: &Target<'_>) -> Result<Vec<SiteIndex>, Rejection> {
        let host = self
            .host(&host_name(target)?)
            .ok_or(Rejection::Misdirected)?;
        let path = canonical_path(target, true)?;
        // The last segment may be incomplete: `/a/b` also begins `/a/bc`, which the site of `/a/b` does not have.
        let end = path.iter().rposition(|&byte| byte == b'/');
        let holder = host.holder(path.get(..=end.unwrap_or(0)).unwrap_or_default());
        let starts = |start: &str| start.as_bytes().starts_with(&path);
        let below = host.paths.iter().filter(|(start, _)| starts(start));
        let mut sites: Vec<_> = below.map(|(_, site)| *site).chain(holder).collect();
        sites.sort_unstable();
        sites.dedup();
        Ok(sites)
    }

    /// The certificate of connections for a server name; `None` if the server name has no certificate.
    fn certificate(&self, server_name: &[u8]) -> Option<&str> {
        let mut name = Vec::new();
        append_authority(&mut name, server_name, None).ok()?;
        self.host(&name)?.certificate.as_deref()
    }

    fn host(&self, name: &[u8]) -> Option<&Host> {
        let name = str::from_utf8(name).ok()?;
        let exact = self.exact.get(name);
        let wildcard = || {
            let suffix = name.find('.').and_then(|dot| name.get(dot..))?;
            self.wildcard.get(suffix)
        };
        exact.or_else(wildcard).or(self.others.as_ref())
    }
}

impl Host {
    /// The site that takes a canonical path.
    fn holder(&self, path: &[u8]) -> Option<SiteIndex> {
        let found = self.paths.iter().find(|(start, _)| is_below(path, start));
        found.map(|(_, site)| *site)
    }

    fn add(&mut self, claim: &HostClaim<'_>) -> Result<(), Conflict> {
        let conflict = |holder, by_certificate| Conflict {
            host: String::new(),
            holder,
            by_certificate,
        };
        if let Some((_, holder)) = self.paths.first()
            && self.certificate.as_deref() != claim.certificate
        {
            return Err(conflict(*holder, true));
        }
        self.certificate = claim.certificate.map(str::to_owned);
        if let Some((_, holder)) = self.paths.iter().find(|(path, _)| *path == claim.path) {
            return Err(conflict(*holder, false));
        }
        let longer = |(path, _): &(String, SiteIndex)| path.len() >= claim.path.len();
        let position = self.paths.partition_point(longer);
        self.paths
            .insert(position, (claim.path.to_owned(), claim.site));
        Ok(())
    }
}

impl Conflict {
    fn of(self, host: &str) -> Self {
        Self {
            host: host.to_owned(),
            ..self
        }
    }
}

/// The name of the target's host in its canonical spelling, without the port.
pub fn host_name(target: &Target<'_>) -> Result<Vec<u8>, Rejection> {
    let mut name = Vec::with_capacity(target.authority.len());
    append_authority(&mut name, target.authority, target.scheme)?;
    let from = name.iter().rposition(|&byte| byte == b']').unwrap_or(0);
    let port = name.iter().skip(from).position(|&byte| byte == b':');
    name.truncate(port.map_or(name.len(), |port| from + port));
    Ok(name)
}

/// Whether the target may have empty segments in its path.
fn has_empty_segments(target: &Target<'_>) -> bool {
    target.path.windows(2).any(|pair| pair == b"//")
}

/// The target's path, without its query, in the one spelling by which sites are distinguished.
fn canonical_path(target: &Target<'_>, merge_slashes: bool) -> Result<Vec<u8>, Rejection> {
    let resource = match target.path.starts_with(b"/") {
        true => target.path,
        false => {
            split_absolute(target.path)
                .ok_or(Rejection::RequestTarget)?
                .2
        }
    };
    let path = resource
        .split(|&byte| byte == b'?')
        .next()
        .unwrap_or_default();
    let path = if path.is_empty() { b"/" } else { path };
    let mut canonical = Vec::with_capacity(path.len());
    append_path(&mut canonical, path, Escaping::Unreserved, merge_slashes)?;
    Ok(canonical)
}
