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
        let not_before = self.not_before.map(|time| time.to_string());
        let expires = self.expires.to_string();
        let fields = [
            VERSION,
            method,
            self.host,
            kind,
            resource,
            not_before.as_deref().unwrap_or_default(),
            &expires,
            self.from.unwrap_or_default(),
            self.key,
        ];
        for field in fields {
            write_field(field.as_bytes(), &mut sink);
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
    sink(value.len().to_string().as_bytes());
    sink(b":");
    sink(value);
    sink(b",");
}
