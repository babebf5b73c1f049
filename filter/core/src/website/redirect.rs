// SPDX-License-Identifier: Apache-2.0
//! Redirects of URLs that have moved, by the policy's `redirects`.

use super::query_of;
use crate::key::Target;
use crate::key::client_url::ClientUrl;
use crate::policy::{Policy, Redirect};
use crate::sites::host_name;

/// A redirect of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// The status of the response.
    pub status: u16,
    /// The value of `Location` (RFC 9110, 10.2.2). Its host is that of the policy. If the policy names none, it is a
    /// path without a host.
    pub location: String,
}

impl Redirection {
    /// The redirect of a request with this method for `target`; `None` if no redirect of the policy matches, or the
    /// client is already at the URL to which it leads.
    pub fn of(policy: &Policy, target: &Target<'_>, method: &str) -> Option<Self> {
        if policy.redirects.is_empty() {
            return None;
        }
        let url = ClientUrl::of(policy, target).ok()?;
        let host = String::from_utf8(host_name(target).ok()?).ok()?;
        let matching = |redirect: &&Redirect| {
            let of_host = redirect.from.host.as_ref().is_none_or(|from| *from == host);
            of_host && redirect.from.path.rest(url.path()).is_some()
        };
        let redirect = policy.redirects.iter().find(matching)?;
        let path = redirect.new_path(url.path())?;
        if path == url.path() && redirect.to.host().is_none_or(|to| to == host) {
            return None;
        }
        let origin = redirect.to.origin.as_deref().unwrap_or_default();
        Some(Self {
            status: status(redirect.status, method),
            location: format!("{origin}{path}{}", query_of(target.path)),
        })
    }
}

/// The status with which a client repeats the request by the same method (RFC 9110, 15.4.2 and 15.4.3).
fn status(status: u16, method: &str) -> u16 {
    match status {
        _ if matches!(method, "GET" | "HEAD") => status,
        301 => 308,
        302 => 307,
        status => status,
    }
}
