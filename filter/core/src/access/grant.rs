// SPDX-License-Identifier: Apache-2.0
//! The facts that a signature covers, and their text.

use std::io::Write as _;

/// The first field of the signed text: the version of its form.
pub const VERSION: &str = "sluice-signed-1";
/// The end of a prefix.
pub const PREFIX_END: &str = "/*";

/// The resources that a signature opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantedResource<'a> {
    /// One URL: the canonical path, and the query as the cache key has it.
    Url(&'a str),
    /// All paths that begin like this text, which ends in [`PREFIX_END`], with any query.
    Prefix(&'a str),
}

/// The permission that a signature grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant<'a> {
    /// The method of the request. A GET and a HEAD have the same signature.
    pub method: &'a str,
    /// The canonical host, without a port.
    pub host: &'a str,
    /// The resources.
    pub resource: GrantedResource<'a>,
    /// The beginning, in seconds since the Unix epoch.
    pub not_before: Option<u64>,
    /// The end, in seconds since the Unix epoch.
    pub expires: u64,
    /// The network of the client, as a text.
    pub from: Option<&'a str>,
    /// The name of the key.
    pub key: &'a str,
}

impl Grant<'_> {
    /// Writes the signed text into `sink`: nine fields, always in this order, each as `LENGTH:VALUE,`. So two different
    /// grants never have the same text.
    pub fn write(&self, mut sink: impl FnMut(&[u8])) {
        let method = match self.method {
            "HEAD" => "GET",
            method => method,
        };
        let (kind, resource) = match self.resource {
            GrantedResource::Url(url) => ("url", url),
            GrantedResource::Prefix(prefix) => ("prefix", prefix),
        };
        let (mut begin, mut end) = ([0; MOST_DIGITS], [0; MOST_DIGITS]);
        let begins = self.not_before.map(|time| decimal(time, &mut begin));
        let fields = [
            VERSION.as_bytes(),
            method.as_bytes(),
            self.host.as_bytes(),
            kind.as_bytes(),
            resource.as_bytes(),
            begins.unwrap_or_default(),
            decimal(self.expires, &mut end),
            self.from.unwrap_or_default().as_bytes(),
            self.key.as_bytes(),
        ];
        for field in fields {
            write_field(field, &mut sink);
        }
    }

    /// The signed text.
    pub fn to_text(&self) -> String {
        let mut text = Vec::new();
        self.write(|part| text.extend_from_slice(part));
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// Writes a field as `LENGTH:VALUE,`, with the length in bytes as a decimal number.
pub(crate) fn write_field(value: &[u8], sink: &mut dyn FnMut(&[u8])) {
    sink(decimal(value.len() as u64, &mut [0; MOST_DIGITS]));
    sink(b":");
    sink(value);
    sink(b",");
}

/// The digits of the largest number.
const MOST_DIGITS: usize = 20;

/// Writes a number in decimal. Returns its digits, which are in `digits`.
fn decimal(number: u64, digits: &mut [u8; MOST_DIGITS]) -> &[u8] {
    let mut left = digits.as_mut_slice();
    // All digits fit.
    let _ = write!(left, "{number}");
    let count = MOST_DIGITS - left.len();
    digits.get(..count).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_its_decimal_digits() {
        for number in [0, 7, 10, 1_800_000_000, u64::MAX] {
            let mut digits = [0; MOST_DIGITS];
            let written = decimal(number, &mut digits);
            assert_eq!(written, number.to_string().as_bytes());
        }
    }
}
