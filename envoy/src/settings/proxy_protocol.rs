// SPDX-License-Identifier: Apache-2.0
//! The PROXY protocol, by which a load balancer names the client of a connection.

use sluice_core::policy::Network;

use super::environment::Environment;

/// The PROXY protocol on the listeners for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyProtocol {
    /// Whether each connection must begin with a header of the protocol.
    pub is_required: bool,
    /// The networks of the load balancers: addresses, and the number of the bits that all addresses of the network
    /// share. Connections from other addresses are closed.
    pub from: Vec<(String, u8)>,
}

impl ProxyProtocol {
    /// Reads `SLUICE_PROXY_PROTOCOL` and `SLUICE_PROXY_PROTOCOL_FROM`. `None`: there is a problem.
    pub fn read(env: &mut Environment<'_>) -> Option<Option<Self>> {
        const MODE: &str = "SLUICE_PROXY_PROTOCOL";
        const FROM: &str = "SLUICE_PROXY_PROTOCOL_FROM";
        let modes = [("off", None), ("optional", Some(false)), ("on", Some(true))];
        let mode = env.choice(MODE, &modes);
        let is_set = env.set(FROM).is_some();
        let accepted = format!(
            "networks with commas between them, each {}",
            Network::ACCEPTED
        );
        let from = env.parse(FROM, &accepted, |text| {
            text.split(',')
                .map(|network| read_network(network.trim()))
                .collect()
        });
        match (mode?, is_set) {
            (Some(_), false) => {
                let accepted = "must be set, as SLUICE_PROXY_PROTOCOL is: any other client could name any address";
                env.refuse(FROM, None, accepted);
                None
            }
            (None, true) => {
                env.refuse(
                    FROM,
                    None,
                    "must be unset, or SLUICE_PROXY_PROTOCOL be on or optional",
                );
                None
            }
            (None, false) => Some(None),
            (Some(is_required), true) => Some(Some(Self {
                is_required,
                from: from?,
            })),
        }
    }
}

/// Reads a network as its address and the number of its bits.
fn read_network(text: &str) -> Option<(String, u8)> {
    Network::parse(text)?;
    let (address, length) = text.split_once('/').unwrap_or((text, ""));
    let all = if address.contains(':') { 128 } else { 32 };
    Some((address.to_owned(), length.parse().unwrap_or(all)))
}
