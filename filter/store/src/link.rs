// SPDX-License-Identifier: Apache-2.0
//! The header by which EDGE vouches for a request towards ORIGIN, on the same worker.
//!
//! The two roles run in one VM, but Envoy's cache filter between them also sends requests. ORIGIN trusts only a
//! request with a link that has the VM's secret.

use sluice_core::coalescing::StoreRequest;
use sluice_core::hexadecimal;
use sluice_core::workers::StreamId;

/// Name of the request header with the link.
pub const LINK_HEADER: &str = "x-sluice-link";
/// Name of the request header with the store's `:path`, for a request that the filter sends through a listener.
/// Envoy's connection manager answers a `:path` with a `#` with status 400. So `:path` has no qualifiers there, and
/// EDGE replaces it.
pub const PATH_HEADER: &str = "x-sluice-path";
/// Name of the response header with which ORIGIN marks a response that was sent around the store. The `Cache-Control`
/// of such a response is for Envoy's cache only.
pub const AROUND_HEADER: &str = "x-sluice-around";
/// Value of `If-Range` with which Envoy's cache filter ignores a request. ORIGIN removes it.
pub const BYPASS_SENTINEL: &str = "\"sluice-bypass\"";

/// Proof that a link was written by the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secrets {
    /// Secret of all VMs of the process, including earlier ones.
    pub process: u64,
    /// Secret of one VM.
    pub vm: u64,
}

/// Link that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// VM that vouches for the request.
    pub vouched: Vouched,
    /// Name of the site that the request is for; empty if the edge has one site without a name.
    pub site: &'a str,
}

/// VM whose EDGE vouches for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vouched {
    /// This VM.
    Here(Link),
    /// Another VM. Its module is being replaced by this VM's module, or replaces it. This VM does not have the other
    /// VM's data about the request.
    Elsewhere(StoreRequest),
}

/// Link of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Purpose of the request.
    pub request: StoreRequest,
    /// Number of the request within EDGE.
    pub stream: StreamId,
    /// Number of the policy that was valid when the request arrived.
    pub policy: u32,
}

impl Link {
    /// Returns the value of the header for a request of a site, with the VM's secrets.
    pub fn encode(self, secrets: Secrets, site: &str) -> String {
        let mut value = String::with_capacity(49 + site.len());
        hexadecimal::push(&mut value, &secrets.process.to_be_bytes());
        hexadecimal::push(&mut value, &secrets.vm.to_be_bytes());
        value.push(char::from(self.request as u8));
        hexadecimal::push(&mut value, &self.stream.0.to_be_bytes());
        hexadecimal::push(&mut value, &self.policy.to_be_bytes());
        value.push_str(site);
        value
    }

    /// Reads the value of a header; `None` if it does not have the process's secret.
    pub fn decode(value: &[u8], secrets: Secrets) -> Option<Received<'_>> {
        let (process, rest) = value.split_first_chunk::<16>()?;
        if hexadecimal::number(process)? != secrets.process {
            return None;
        }
        let (vm, rest) = rest.split_first_chunk::<16>()?;
        let ([letter], rest) = rest.split_first_chunk::<1>()?;
        let request = StoreRequest::of_letter(*letter)?;
        let (stream, rest) = rest.split_first_chunk::<8>()?;
        let (policy, site) = rest.split_first_chunk::<8>()?;
        let vouched = if hexadecimal::number(vm)? == secrets.vm {
            Vouched::Here(Self {
                request,
                stream: StreamId(u32::try_from(hexadecimal::number(stream)?).ok()?),
                policy: u32::try_from(hexadecimal::number(policy)?).ok()?,
            })
        } else {
            Vouched::Elsewhere(request)
        };
        let site = str::from_utf8(site).ok()?;
        Some(Received { vouched, site })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link = Link {
        request: StoreRequest::Lead,
        stream: StreamId(77),
        policy: 3,
    };

    const SECRETS: Secrets = Secrets {
        process: u64::MAX - 5,
        vm: 7,
    };

    #[test]
    fn link_round_trips() {
        for (request, site) in StoreRequest::ALL
            .into_iter()
            .zip(["", "assets"].into_iter().cycle())
        {
            let link = Link { request, ..LINK };
            let vouched = Vouched::Here(link);
            assert_eq!(
                Link::decode(link.encode(SECRETS, site).as_bytes(), SECRETS),
                Some(Received { vouched, site })
            );
        }
    }

    #[test]
    fn link_of_another_vm_says_its_purpose_and_site_and_nothing_else() {
        let value = LINK.encode(SECRETS, "assets");
        let here = Secrets { vm: 8, ..SECRETS };
        let vouched = Vouched::Elsewhere(StoreRequest::Lead);
        let site = "assets";
        assert_eq!(
            Link::decode(value.as_bytes(), here),
            Some(Received { vouched, site })
        );
    }

    #[test]
    fn link_without_the_secret_is_none() {
        let value = LINK.encode(SECRETS, "");
        let other = Secrets {
            process: 2,
            ..SECRETS
        };
        assert_eq!(Link::decode(value.as_bytes(), other), None);
        let zero = Secrets { process: 0, vm: 0 };
        assert_eq!(Link::decode(b"", zero), None);
        assert_eq!(Link::decode(&[b'0'; 32], zero), None);
        assert_eq!(
            Link::decode(b"+00000000000000000000000000000000l0000000000000000", zero),
            None
        );
    }
}
