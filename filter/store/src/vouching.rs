// SPDX-License-Identifier: Apache-2.0
//! The secrets by which EDGE vouches for a request to ORIGIN, and by which each knows what the filter has sent.

use sluice_core::workers::StreamId;
use sluice_core::workers::agreement::agree_on;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host};

use crate::link::{LINK_HEADER, Link, Received, Secrets, Vouched};
use crate::room::named_route;
use crate::stored::entry::FillId;

/// Name of the background listener's route in Envoy's configuration.
const BACKGROUND_ROUTE: &[u8] = b"sluice_background";

/// The sender of a request that EDGE meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A client.
    Client,
    /// The filter itself.
    Filter(Link),
    /// The background listener has it, and the filter has not sent it.
    Stranger,
}

/// The secrets of one VM.
#[derive(Clone, Copy, Debug)]
pub struct Vouching {
    /// Distinguishes this VM's fills from all others, past ones included.
    nonce: u64,
    secrets: Secrets,
}

impl Vouching {
    /// New secrets of a VM, and the secret on which all VMs of this process have agreed.
    ///
    /// # Errors
    /// The host refused a call.
    pub fn new(host: &dyn Host) -> host::Result<Self> {
        // A VM is believed by its successor, because both know this one.
        let [process, _] = agree_on(host, "sluice/secret", host.random()?)?;
        let [nonce, vm] = [host.random()?, host.random()?].map(u64::from_le_bytes);
        let secrets = Secrets { process, vm };
        Ok(Self { nonce, secrets })
    }

    /// The value of the link header for a request of a site.
    pub fn encode(&self, link: Link, site: &str) -> String {
        link.encode(self.secrets, site)
    }

    /// What a link header says, if it is the filter's.
    pub fn decode<'a>(&self, value: &'a [u8]) -> Option<Received<'a>> {
        Link::decode(value, self.secrets)
    }

    /// The name of this VM's fill on behalf of a request.
    pub const fn fill_id(&self, stream: StreamId) -> FillId {
        FillId {
            nonce: self.nonce,
            stream: stream.0,
        }
    }

    /// The sender of the effective context's request. A link is worth something in the background listener alone, because
    /// a client may have read a true one in a log.
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
