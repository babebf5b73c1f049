// SPDX-License-Identifier: Apache-2.0
//! The secrets by which EDGE vouches for a request to ORIGIN, and by which both roles recognize the filter's
//! requests.

use sluice_core::workers::StreamId;
use sluice_core::workers::agreement::agree_on;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host};

use crate::link::{LINK_HEADER, Link, Received, Secrets, Vouched};
use crate::room::named_route;
use crate::stored::entry::FillId;

/// Name of the background listener's route in Envoy's configuration.
const BACKGROUND_ROUTE: &[u8] = b"sluice_background";

/// Sender of a request that EDGE receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A client.
    Client,
    /// The filter itself.
    Filter(Link),
    /// Unknown sender: the background listener received the request, but the filter has not sent it.
    Stranger,
}

/// Secrets of one VM.
#[derive(Clone, Copy, Debug)]
pub struct Vouching {
    /// Number that distinguishes this VM's fills from all others, including earlier ones.
    nonce: u64,
    secrets: Secrets,
}

impl Vouching {
    /// Chooses new secrets for a VM, and reads the secret on which all VMs of this process have agreed.
    ///
    /// # Errors
    /// The host refused a call.
    pub fn new(host: &dyn Host) -> host::Result<Self> {
        // Both a VM and its successor know this secret, so the successor believes the VM's links.
        let [process, _] = agree_on(host, "sluice/secret", host.random()?)?;
        let [nonce, vm] = [host.random()?, host.random()?].map(u64::from_le_bytes);
        let secrets = Secrets { process, vm };
        Ok(Self { nonce, secrets })
    }

    /// Returns the value of the link header for a request of a site.
    pub fn encode(&self, link: Link, site: &str) -> String {
        link.encode(self.secrets, site)
    }

    /// Reads a link header; `None` if it was not written by the filter.
    pub fn decode<'a>(&self, value: &'a [u8]) -> Option<Received<'a>> {
        Link::decode(value, self.secrets)
    }

    /// Returns the identity of this VM's fill for a request.
    pub const fn fill_id(&self, stream: StreamId) -> FillId {
        FillId {
            nonce: self.nonce,
            stream: stream.0,
        }
    }

    /// Returns the sender of the effective context's request. A link counts only in the background listener, because
    /// a client may have read a valid link in a log.
    ///
    /// # Errors
    /// The host refused a call.
    pub fn sender(&self, host: &dyn Host, headers: &Headers) -> host::Result<Sender> {
        let Some(link) = headers.get(LINK_HEADER) else {
            return Ok(Sender::Client);
        };
        let route = host.property("xds\0route_name")?;
        if route.as_deref().map(named_route) != Some(BACKGROUND_ROUTE) {
            return Ok(Sender::Client);
        }
        Ok(match self.decode(link.bytes()).map(|link| link.vouched) {
            Some(Vouched::Here(link)) if link.request.is_background() => Sender::Filter(link),
            _ => Sender::Stranger,
        })
    }
}
