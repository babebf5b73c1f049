// SPDX-License-Identifier: Apache-2.0
//! The header by which EDGE vouches for a request towards ORIGIN, on the same worker.
//!
//! The two roles run in one VM, but between them lies Envoy's cache filter, which makes requests of its
//! own. ORIGIN honours nothing without a link that carries the VM's secret.

use sluice_core::coalescing::NextStep;
use sluice_core::hexadecimal;
use sluice_core::workers::StreamId;

/// Name of the request header.
pub const LINK_HEADER: &str = "x-sluice-link";
/// Name of the request header with the store's `:path`, for a request that the filter sends through a
/// listener: Envoy's connection manager answers a `:path` with a `#` with 400, so there `:path` has no
/// qualifiers, and EDGE replaces it.
pub const PATH_HEADER: &str = "x-sluice-path";
/// Name of the response header by which ORIGIN tells EDGE that the response has gone around the store, and that its
/// `Cache-Control` is one for Envoy's cache alone.
pub const AROUND_HEADER: &str = "x-sluice-around";
/// `If-Range` value that keeps Envoy's cache filters from a request; ORIGIN removes it.
pub const BYPASS_SENTINEL: &str = "\"sluice-bypass\"";

/// What a request is for, with the letter that stands for it in a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StoreRequest {
    /// The store is believed to have it.
    Fresh = b'f',
    /// It leads.
    Lead = b'l',
    /// It waited, and the store is believed to have what its leader fetched.
    Collapsed = b'c',
    /// It waited while the stored response was validated, which the store is to serve once more.
    Validated = b'v',
    /// It goes through the store by itself.
    Alone = b'a',
    /// It goes around the store.
    Bypass = b'b',
    /// It goes around the store for a range of what is being stored.
    Ahead = b'h',
    /// It goes through the store by itself, and the store revalidates what does not satisfy it.
    Unshared = b'k',
    /// It takes what the store has, and never goes on to the origin.
    StoreOnly = b's',
    /// It only asks whether the store has it, and never goes on to the origin.
    Lookup = b'p',
    /// It makes the store revalidate what it serves stale, for nobody.
    Refresh = b'r',
    /// It leads, and nobody wants its response.
    Fill = b'i',
    /// It asks the origin how large the object is, around the store.
    Size = b'z',
    /// It is for a document that takes the place of a missing object, and is handled like a client's.
    Substitute = b'd',
    /// It has no body though its headers did not end it: it comes back to EDGE, and is handled like a client's.
    Empty = b'e',
}

impl StoreRequest {
    const ALL: [Self; 15] = [
        Self::Fresh,
        Self::Lead,
        Self::Collapsed,
        Self::Validated,
        Self::Alone,
        Self::Bypass,
        Self::Ahead,
        Self::Unshared,
        Self::StoreOnly,
        Self::Lookup,
        Self::Refresh,
        Self::Fill,
        Self::Size,
        Self::Substitute,
        Self::Empty,
    ];

    /// The request to the store that goes on so; `None` for one that goes neither to the store nor around it.
    pub const fn of(next_step: NextStep) -> Option<Self> {
        Some(match next_step {
            NextStep::Fresh => Self::Fresh,
            NextStep::Lead => Self::Lead,
            NextStep::Collapsed => Self::Collapsed,
            NextStep::Validated => Self::Validated,
            NextStep::Alone => Self::Alone,
            NextStep::Unshared => Self::Unshared,
            NextStep::HitForMiss(_)
            | NextStep::WaitTimeout
            | NextStep::NoRoom
            | NextStep::UnsharedRange
            | NextStep::Unfilled => Self::Bypass,
            NextStep::Ahead => Self::Ahead,
            NextStep::Varies | NextStep::Unneeded => return None,
        })
    }

    /// Whether it goes around the store.
    pub const fn avoids_the_store(self) -> bool {
        matches!(self, Self::Bypass | Self::Ahead | Self::Size)
    }

    /// Whether others learn of the response or of its size, or it is a part of what others get.
    pub const fn is_shared(self) -> bool {
        !matches!(self, Self::Bypass)
    }

    /// Whether it is a request that the filter has sent, which comes by the background listener.
    pub const fn is_background(self) -> bool {
        matches!(
            self,
            Self::Lookup | Self::Refresh | Self::Fill | Self::Size | Self::Substitute | Self::Empty
        )
    }

    /// Whether a link of that kind names the request itself, and not the call that it is.
    pub const fn names_a_request(self) -> bool {
        !self.is_background() || self.is_relinked()
    }

    /// Whether such a request of the filter's own goes on under a link of its own, and not that of who has sent it.
    pub const fn is_relinked(self) -> bool {
        matches!(self, Self::Refresh | Self::Fill | Self::Substitute)
    }

    fn of_letter(letter: u8) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|request| *request as u8 == letter)
    }
}

/// What proves that a link is the filter's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secrets {
    /// Known to all VMs of the process, past ones included.
    pub process: u64,
    /// Known to one VM.
    pub vm: u64,
}

/// A link as it was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Who vouches for the request.
    pub vouched: Vouched,
    /// The name of the site that the request is for; empty where the edge has one site without a name.
    pub site: &'a str,
}

/// By which EDGE a request is vouched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vouched {
    /// By that of this VM.
    Here(Link),
    /// By that of another VM, whose module is being replaced by this one's, or replaces it. What it knows of the
    /// request is not to be had here.
    Elsewhere(StoreRequest),
}

/// The link of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// What the request is for.
    pub request: StoreRequest,
    /// The request within EDGE.
    pub stream: StreamId,
    /// Number of the policy under which it came.
    pub policy: u32,
}

impl Link {
    /// The header's value for a request of a site, with the VM's secrets.
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

    /// Reads a header's value; `None` unless it carries the process's secret.
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
