// SPDX-License-Identifier: Apache-2.0
//! The facts about a client's request that the server of the scheme forward gets.

use sluice_core::access::credentials::SignedCookies;
use sluice_core::internal_headers::CLIENT_HEADER;
use sluice_core::key::Target;
use sluice_core::key::client_url::ClientUrl;
use sluice_core::policy::{AccessPolicy, ForwardPolicy};

use crate::request::headers::Header;
use sluice_host::headers::Headers;

/// Headers of the client that each server gets.
const ALWAYS_SENT: [&str; 3] = ["accept", "authorization", "user-agent"];

/// The facts about a client's request that a server gets.
pub(super) struct Asker<'a> {
    pub access: &'a AccessPolicy,
    pub forward: &'a ForwardPolicy,
    pub url: &'a ClientUrl,
    pub target: &'a Target<'a>,
    pub is_secure: bool,
}

impl Asker<'_> {
    /// The headers of the question about a request that was `sent` with these headers.
    pub fn fields(&self, sent: &Headers, address: Option<String>) -> Vec<Header> {
        let url = &self.forward.url;
        let path = match self.forward.append {
            true => [url.path.trim_end_matches('/'), self.url.as_str()].concat(),
            false => url.path.clone(),
        };
        let method = sent.get(":method").map(|method| method.bytes().to_vec());
        let method = method.unwrap_or_default();
        let scheme = if self.is_secure { "https" } else { "http" };
        let host = self.target.authority;
        let uri = self.url.as_str().as_bytes();
        let original = [scheme.as_bytes(), b"://", host, uri].concat();
        let mut fields = vec![
            (":method", b"GET".to_vec()),
            (":scheme", scheme.as_bytes().to_vec()),
            (":authority", url.authority.clone().into_bytes()),
            (":path", path.into_bytes()),
            ("x-forwarded-method", method.clone()),
            ("x-original-method", method),
            ("x-forwarded-proto", scheme.as_bytes().to_vec()),
            ("x-forwarded-host", host.to_vec()),
            ("x-forwarded-uri", uri.to_vec()),
            ("x-original-url", original),
        ];
        if let Some(address) = address {
            // The server's cluster makes X-Forwarded-For from this header.
            fields.push((CLIENT_HEADER, address.into_bytes()));
        }
        let listed = self.forward.headers.iter().map(String::as_str);
        let names = ALWAYS_SENT.into_iter().chain(listed);
        let lines = names.flat_map(|wanted| {
            let lines = sent.iter().filter(move |(name, _)| *name == wanted);
            lines.map(move |(_, value)| (wanted, value.to_vec()))
        });
        fields.extend(lines);
        let cookies = sent.fields().filter(|(name, _)| *name == b"cookie");
        let cookies: Vec<_> = cookies.map(|(_, value)| value).collect();
        let has_token = |name: &[u8]| self.access.has_token(name);
        let signed = SignedCookies::of(cookies.iter().copied(), &has_token);
        let rest = signed.map_or_else(|| cookies.join(&b"; "[..]), |signed| signed.rest);
        if !rest.is_empty() {
            fields.push(("cookie", rest));
        }
        let owned = fields.into_iter();
        owned
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}
