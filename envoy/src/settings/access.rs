// SPDX-License-Identifier: Apache-2.0
//! The access rules of the one site in front of `SLUICE_ORIGIN`, and the rule that the edge does not ask itself.

use std::net::IpAddr;

use super::environment::Environment;
use super::problem::SettingProblem;
use crate::origin::{BucketName, Endpoint, Origin};
use crate::sites::{Site, SiteAccess};

/// Reads the file of `SLUICE_ACCESS`, for a site with this origin or for the demo. `None`: it is not set, or there is
/// a problem.
pub fn read(env: &mut Environment<'_>, origin: Option<&Origin>) -> Option<SiteAccess> {
    let file = env.set("SLUICE_ACCESS")?;
    // The demo has a bucket, too.
    let bucket = BucketName::parse("demo").map(|bucket| bucket.placed(None, "us-east-1", None));
    let origin = origin.cloned().or(bucket.map(Origin::Bucket))?;
    let read = SiteAccess::read_file(&file, &origin, env.lookup());
    let report = |problems: Vec<_>| {
        let problems = problems.into_iter().map(SettingProblem::File);
        problems.for_each(|problem| env.report(problem));
    };
    read.map_err(report).ok()
}

/// The addresses at which the edge itself answers.
#[derive(Clone, Copy, Debug)]
pub struct OwnAddresses<'a> {
    /// The address of the listeners.
    pub bind: Option<IpAddr>,
    /// The ports of the listeners for clients.
    pub ports: [Option<u16>; 2],
    /// The sites of `SLUICE_SITES`.
    pub sites: &'a [Site],
}

impl OwnAddresses<'_> {
    /// Refuses rules whose server is the edge itself, which would ask itself about each request.
    pub fn check(&self, env: &mut Environment<'_>, access: Option<&SiteAccess>) {
        let of_sites = self.sites.iter().filter_map(|site| site.access.as_ref());
        for server in of_sites
            .chain(access)
            .filter_map(|access| access.checker.as_ref())
        {
            if self.has(&server.endpoint) {
                let url = &server.policy.url.text;
                let expected = "expected another server than the edge itself";
                let text = format!("access.any_of.forward.url: {url:?}: {expected}");
                env.report(SettingProblem::Names(text));
            }
        }
    }

    fn has(&self, server: &Endpoint) -> bool {
        let has_port = self.ports.contains(&Some(server.port));
        let is_local = match server.ip() {
            Some(ip) => ip.is_loopback() || ip.is_unspecified() || Some(ip) == self.bind,
            None => server.host == "localhost",
        };
        let mut hosts = self.sites.iter().flat_map(|site| &site.hosts);
        let is_host = hosts.any(|host| *host == server.host);
        (is_local && has_port) || (is_host && (has_port || matches!(server.port, 80 | 443)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edge_does_not_ask_itself() {
        let own = OwnAddresses {
            bind: "192.0.2.1".parse().ok(),
            ports: [Some(8080), None],
            sites: &[],
        };
        for (url, is_own) in [
            ("http://127.0.0.1:8080", true),
            ("http://localhost:8080", true),
            ("http://[::1]:8080", true),
            ("http://192.0.2.1:8080", true),
            ("http://192.0.2.1:8081", false),
            ("http://127.0.0.1:4180", false),
            ("http://192.0.2.2:8080", false),
            ("http://oauth2-proxy:8080", false),
        ] {
            assert_eq!(own.has(&Endpoint::parse(url).unwrap()), is_own, "{url}");
        }
    }
}
