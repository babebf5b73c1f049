// SPDX-License-Identifier: Apache-2.0
//! The site of a client's request, and its demands on the client's connection.

use crate::worker::policies::Policies;
use sluice_core::host::HostError;
use sluice_core::http::caching::cache_status::detailed;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::key::{Rejection, Target, split_absolute};
use sluice_core::sites::{Site, SiteIndex};
use sluice_core::website::redirect::Redirection;
use sluice_store::Link;

use super::{Edge, Refusal, State};
use crate::reply::CACHE_STATUS;
use crate::request::account::tell_site;
use sluice_host::headers::Headers;
use sluice_host::{Host, Map};

/// The name by which a TLS client has chosen the certificate of its connection (RFC 6066, 3).
const SERVER_NAME: &str = "connection\0requested_server_name";

impl Edge {
    /// Finds the site of a client's request, and returns the request's target.
    pub(super) fn choose_site<'a>(
        &mut self,
        host: &dyn Host,
        headers: &'a Headers,
    ) -> Result<Target<'a>, Refusal> {
        let target = headers.target();
        let found = self.generation.sites.find(&target, || server_name(host));
        self.turn_to_site(found.map_err(Refusal::Rejected)?)?;
        self.is_secure = is_secure(headers);
        let policy = &self.policy.policy;
        if policy.response.account && !policy.site.name.is_empty() {
            let authority = FieldValue::new(target.authority).to_string();
            tell_site(host, &policy.site.name, &authority)?;
        }
        Ok(target)
    }

    /// Sets the policy under which EDGE first handled the request, even if its site has been removed since.
    pub(super) fn keep_to_policy(
        &mut self,
        policies: &Policies,
        link: Link,
    ) -> Result<(), Refusal> {
        let policy = policies.get(link.policy);
        self.policy = policy.ok_or(Refusal::Stranger)?.clone();
        self.site = self.generation.sites.named(&self.policy.policy.site.name);
        Ok(())
    }

    /// The site's settings beside its policy, unless the site has been removed.
    fn site(&self) -> Option<&Site> {
        self.generation.sites.sites.get(self.site?)
    }

    /// Handles the request for that site from here on.
    pub(super) fn turn_to_site(&mut self, site: SiteIndex) -> Result<(), Refusal> {
        if self.site != Some(site) {
            let policy = self.generation.policy(site);
            self.policy = policy.ok_or(Refusal::Rejected(Rejection::NoSite))?.clone();
            self.site = Some(site);
        }
        Ok(())
    }

    /// Whether the site requires HTTPS but the request was not sent over HTTPS.
    pub(super) fn must_use_https(&self) -> bool {
        !self.is_secure && self.site().is_some_and(|site| site.redirect_to_https)
    }

    /// Redirects the client to the same URL over HTTPS, on the default port. A GET stays a GET, and any other method
    /// stays unchanged.
    pub(super) fn redirect_to_https(
        &mut self,
        host: &dyn Host,
        target: &Target<'_>,
        method: Option<FieldValue<'_>>,
    ) -> Result<(), HostError> {
        self.state = State::Answered { typed: true };
        let status = if method.is_some_and(|method| method == "GET" || method == "HEAD") {
            301
        } else {
            308
        };
        let location = https_location(target);
        host.respond(status, "sluice_https", &[("location", &location)], "")
    }

    /// The redirect of a request with these headers, by the redirects of its site.
    pub(super) fn redirection(&self, headers: &Headers) -> Option<Redirection> {
        let method = headers.get(":method");
        let method = method.and_then(|method| method.text().ok());
        let policy = &self.policy.policy;
        Redirection::of(policy, &headers.target(), method.unwrap_or_default())
    }

    /// Answers a request whose URL has moved. Returns whether it has.
    pub(super) fn redirect(
        &mut self,
        host: &dyn Host,
        headers: &Headers,
    ) -> Result<bool, HostError> {
        let Some(redirection) = self.redirection(headers) else {
            return Ok(false);
        };
        self.state = State::Answered { typed: true };
        let cache_status = detailed(&self.identity.name, "redirect");
        let mut fields = vec![
            ("location", redirection.location.as_str()),
            (CACHE_STATUS, cache_status.as_str()),
        ];
        if self.policy.policy.access.is_some() {
            fields.push(("cache-control", "private"));
        }
        host.respond(redirection.status, "sluice_redirect", &fields, "")?;
        Ok(true)
    }

    /// Adds HSTS to a response over HTTPS, if the site has it (RFC 6797, 7.1).
    pub(super) fn mark_secure(&self, host: &dyn Host) -> Result<(), HostError> {
        match self.site().and_then(|site| site.hsts.as_deref()) {
            Some(hsts) if self.is_secure => {
                host.set_header(Map::Response, "strict-transport-security", hsts)
            }
            _ => Ok(()),
        }
    }
}

/// The name by which the client of the effective context's request has chosen the certificate of its connection. A
/// connection in cleartext has no name.
pub fn server_name(host: &dyn Host) -> Option<Vec<u8>> {
    let name = host.property(SERVER_NAME).ok().flatten();
    name.filter(|name| !name.is_empty())
}

/// Whether the client has used HTTPS. Envoy reports it, or the trusted proxy in front of it. A client of HTTP/2 may
/// send any `:scheme`.
pub(super) fn is_secure(headers: &Headers) -> bool {
    let told = headers.get("x-forwarded-proto");
    let told = told.or_else(|| headers.get(":scheme"));
    told.is_some_and(|told| told.bytes().eq_ignore_ascii_case(b"https"))
}

/// The same URL over HTTPS. The target must be one that the edge serves.
pub(super) fn https_location(target: &Target<'_>) -> String {
    let authority = String::from_utf8_lossy(target.authority);
    let port = authority
        .rfind(':')
        .filter(|colon| authority.rfind(']') < Some(*colon));
    let name = port.map_or(&*authority, |port| {
        authority.get(..port).unwrap_or_default()
    });
    let absolute = split_absolute(target.path);
    let resource = absolute.map_or(target.path, |(_, _, resource)| resource);
    let slash = if resource.starts_with(b"/") { "" } else { "/" };
    let resource = String::from_utf8_lossy(resource);
    format!("https://{name}{slash}{resource}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_is_on_its_own_port_whatever_form_the_target_has() {
        for (authority, path, expected) in [
            ("a.test", "/x?y=1", "https://a.test/x?y=1"),
            ("a.test:8080", "/", "https://a.test/"),
            ("[::1]", "/x", "https://[::1]/x"),
            ("[::1]:8080", "/x", "https://[::1]/x"),
            (
                "a.test:80",
                "http://a.test:80/x?u=http://b/",
                "https://a.test/x?u=http://b/",
            ),
            ("a.test", "http://a.test", "https://a.test/"),
            ("a.test", "http://a.test?u=/x", "https://a.test/?u=/x"),
            ("a.test", "/x?u=http://b/", "https://a.test/x?u=http://b/"),
        ] {
            let target = Target {
                scheme: Some("http"),
                authority: authority.as_bytes(),
                path: path.as_bytes(),
            };
            assert_eq!(https_location(&target), expected);
        }
    }
}
