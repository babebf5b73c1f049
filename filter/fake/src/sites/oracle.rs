// SPDX-License-Identifier: Apache-2.0
//! The site that a request is for, found by another algorithm than the filter's.

use super::{Site, SiteRequest, Table};

/// Result of a request that is not refused for another reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// For the site at this position.
    Site(usize),
    /// For a host without a site, or for a host with another certificate than that of the connection.
    Misdirected,
    /// For a path that no site of the host has. Also for a path whose site does not merge slashes, if
    /// the path with its empty segments belongs to another site, or to none.
    NoSite,
}

impl Table {
    /// Returns the site that the request is for.
    pub fn verdict(&self, request: &SiteRequest) -> Verdict {
        let candidates = self.of_host(&host(&request.authority));
        let Some(first) = candidates.first() else {
            return Verdict::Misdirected;
        };
        let certificate = |site: &usize| self.sites[*site].certificate.clone();
        let differ = self
            .sites
            .iter()
            .any(|site| site.certificate != self.sites[*first].certificate);
        if differ
            && let Some(name) = &request.server_name
            && self.of_host(&host(name)).first().and_then(certificate) != certificate(first)
        {
            return Verdict::Misdirected;
        }
        let longest = |merge| {
            let path = segments(&request.path, merge);
            let fitting = candidates
                .iter()
                .filter(|site| self.sites[**site].takes(&path));
            fitting.max_by_key(|site| self.sites[**site].path.len())
        };
        match longest(true) {
            Some(found) if self.sites[*found].merges_slashes || longest(false) == Some(found) => {
                Verdict::Site(*found)
            }
            _ => Verdict::NoSite,
        }
    }

    /// Returns the sites of the host: those with its name, else those with a wildcard for it, else those for all
    /// other hosts.
    fn of_host(&self, host: &str) -> Vec<usize> {
        let wildcard = host.split_once('.').map(|(_, rest)| format!("*.{rest}"));
        let by_name = |name: &str| self.having(|site| site.hosts.iter().any(|one| one == name));
        let exact = by_name(host);
        let wild = wildcard.map_or(Vec::new(), |name| by_name(&name));
        let others = self.having(|site| site.hosts.is_empty());
        [exact, wild, others]
            .into_iter()
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    }

    fn having(&self, test: impl Fn(&Site) -> bool) -> Vec<usize> {
        (0..self.sites.len())
            .filter(|index| test(&self.sites[*index]))
            .collect()
    }
}

impl Site {
    fn takes(&self, path: &[Vec<u8>]) -> bool {
        let own: Vec<_> = self
            .path
            .split('/')
            .skip(1)
            .map(|part| part.as_bytes().to_vec())
            .collect();
        path.starts_with(&own)
    }
}

/// Returns the host of an authority, without the port.
fn host(authority: &str) -> String {
    let lower = authority.to_ascii_lowercase();
    if let Some((address, _)) = lower.split_once(']') {
        let parsed = address[1..].parse::<std::net::Ipv6Addr>();
        return parsed.map_or(lower.clone(), |address| format!("[{address}]"));
    }
    let name = lower.split(':').next().unwrap_or_default();
    name.strip_suffix('.').unwrap_or(name).to_owned()
}

/// Returns the decoded segments of a target's path, without dot segments.
fn segments(target: &str, merge: bool) -> Vec<Vec<u8>> {
    let rest = target.find("://").filter(|_| !target.starts_with('/'));
    let rest = rest.map_or(target, |at| &target[at + 3..]);
    let path = rest.split('?').next().unwrap_or_default();
    let all: Vec<_> = path.split('/').skip(1).map(decoded).collect();
    let mut kept = Vec::new();
    for (index, segment) in all.iter().enumerate() {
        match segment.as_slice() {
            b"." => {}
            b".." => drop(kept.pop()),
            b"" if merge && index + 1 < all.len() => {}
            _ => kept.push(segment.clone()),
        }
    }
    kept
}

fn decoded(segment: &str) -> Vec<u8> {
    let mut parts = segment.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.extend(code);
        bytes.extend(part.bytes().skip(2));
    }
    bytes
}
