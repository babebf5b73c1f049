// SPDX-License-Identifier: Apache-2.0
//! Networks of IP addresses.

use std::net::IpAddr;

use serde_json::Value;

use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind, read_text};

/// A network, or one address (RFC 4632, 3.1; RFC 4291, 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// Number of the bits that all addresses of the network share.
    length: u8,
}

impl Network {
    /// The texts that [`Network::parse`] accepts, for messages to operators.
    pub const ACCEPTED: &str =
        "an address, or a network without further bits, such as 192.0.2.0/24 or 2001:db8::/32";

    /// Reads an address, or a network in the form `ADDRESS/LENGTH`. An address with bits behind the length is refused,
    /// because such a text may be a typing error that opens more than its author means. So is an IPv4 address in the
    /// form of IPv6.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = width(address);
        let length = match length {
            Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
                digits.parse().ok()?
            }
            Some(_) => return None,
            None => most,
        };
        let network = Self { address, length };
        let fits = length <= most && address.to_canonical() == address;
        (fits && network.beginning(address) == bits(address)).then_some(network)
    }

    /// Whether an address is in the network. An IPv4 address in the form of IPv6 counts as the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && self.beginning(address) == bits(self.address)
    }

    /// The bits of an address that the length covers, with zeros behind them.
    fn beginning(&self, address: IpAddr) -> u128 {
        let behind = u32::from(width(address).saturating_sub(self.length));
        let shifted = bits(address).checked_shr(behind).unwrap_or(0);
        shifted.checked_shl(behind).unwrap_or(0)
    }
}

fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl Form<Self> for Network {
    fn read(value: &Value, _: Kind) -> Result<Self, PolicyError> {
        read_text(value, Self::ACCEPTED, Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_that_begin_as_it_does() {
        for (network, address, inside) in [
            ("192.0.2.0/24", "192.0.2.255", true),
            ("192.0.2.0/24", "192.0.3.0", false),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.6", false),
            ("192.0.2.128/25", "192.0.2.127", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("192.0.2.0/24", "::ffff:192.0.2.1", true),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "::ffff:192.0.2.1", false),
            ("::/0", "192.0.2.1", false),
            ("2001:db8::1", "2001:db8::1", true),
        ] {
            let read = Network::parse(network).unwrap();
            let address = address.parse().unwrap();
            assert_eq!(read.contains(address), inside, "{network} {address}");
        }
    }

    #[test]
    fn anything_else_is_no_network() {
        for text in [
            "",
            "office",
            "192.0.2.0/",
            "192.0.2.0/33",
            "192.0.2.0/+8",
            "192.0.2.1/24",
            "192.0.2/24",
            " 192.0.2.0/24",
            "2001:db8::/129",
            "2001:db8::1/32",
            "[2001:db8::]/32",
            "::ffff:192.0.2.0/120",
            "192.0.2.0/24/8",
        ] {
            assert_eq!(Network::parse(text), None, "{text}");
        }
    }
}
