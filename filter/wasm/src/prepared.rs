// SPDX-License-Identifier: Apache-2.0
//! What the origin has answered to a question around the store, for the store's own question.

use crate::headers::Headers;
use crate::host::{self, Map};

/// Larger bodies are fetched once more, by the store's own request.
pub const MOST_BYTES: u64 = 256 << 10;

/// A response as ORIGIN has made it for the store.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// `:status`.
    pub status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Prepared {
    /// The answer to the call whose callback is running, if EDGE has let it come whole.
    pub fn take(body_size: usize) -> Option<Self> {
        let pairs = Headers::new(host::header_pairs(Map::CallResponse).ok()?);
        if !pairs.has(sluice_core::entry::ENTRY_HEADER) {
            return None;
        }
        let status = pairs.text(":status")?.parse().ok()?;
        let of_message = |name: &str| name.starts_with(':') || name == "content-length";
        let headers = pairs
            .iter()
            .filter(|(name, _)| !of_message(name))
            .map(|(name, value)| Some((name.to_owned(), String::from_utf8(value.to_vec()).ok()?)))
            .collect::<Option<Vec<_>>>()?;
        let body = if body_size > 0 {
            host::call_body(body_size).ok()?
        } else {
            Vec::new()
        };
        Some(Self {
            status,
            headers,
            body,
        })
    }

    /// Answers the effective context's request with it.
    pub fn send(&self) -> host::Result<()> {
        let headers: Vec<_> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        host::respond_bytes(self.status, "sluice_prepared", &headers, &self.body)
    }
}
