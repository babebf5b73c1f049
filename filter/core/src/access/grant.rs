// SPDX-License-Identifier: Apache-2.0
//! The facts that a signature covers, and their text.

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
        let not_before = self.not_before.map(Decimal::of);
        let expires = Decimal::of(self.expires);
        let fields = [
            VERSION.as_bytes(),
            method.as_bytes(),
            self.host.as_bytes(),
            kind.as_bytes(),
            resource.as_bytes(),
            not_before.as_ref().map_or(&[], Decimal::bytes),
            expires.bytes(),
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
    sink(Decimal::of(value.len() as u64).bytes());
    sink(b":");
    sink(value);
    sink(b",");
}

/// The digits of the largest number.
const MOST_DIGITS: usize = 20;

/// A number as decimal digits.
struct Decimal {
    /// The digits, behind other bytes.
    text: [u8; MOST_DIGITS],
    start: usize,
}

impl Decimal {
    fn of(mut number: u64) -> Self {
        let mut text = [b'0'; MOST_DIGITS];
        let mut start = MOST_DIGITS;
        for place in text.iter_mut().rev() {
            *place += (number % 10) as u8;
            number /= 10;
            start -= 1;
            if number == 0 {
                break;
            }
        }
        Self { text, start }
    }

    fn bytes(&self) -> &[u8] {
        self.text.get(self.start..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_its_decimal_digits() {
        for number in [0, 7, 10, 1_800_000_000, u64::MAX] {
            assert_eq!(Decimal::of(number).bytes(), number.to_string().as_bytes());
        }
    }
}
