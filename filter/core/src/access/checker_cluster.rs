// SPDX-License-Identifier: Apache-2.0
//! The clusters of servers that decide about access.

use super::grant::write_field;
use crate::hexadecimal;
use crate::key::secret::keyed_hash;
use crate::policy::{ForwardPolicy, JwtPolicy, KeySetSource};

impl ForwardPolicy {
    /// The name of the server's cluster in Envoy. It differs between sites and between settings, so that no question
    /// under a new policy reaches a former server.
    pub fn cluster(&self, site: &str) -> String {
        let ca = self.ca.as_deref().unwrap_or_default();
        name("sluice_forward_", &[site, &self.url.text, ca])
    }
}

impl JwtPolicy {
    /// The name of the cluster, and of the listener inside of Envoy, that verifies tokens. It differs between sites and
    /// between rules, so that no question under a new policy meets former rules. `None`: the entry point has not
    /// installed the keys.
    pub fn cluster(&self, site: &str) -> Option<String> {
        let KeySetSource::Installed(keys) = &self.jwks else {
            return None;
        };
        let fields = [site, keys, &self.issuer];
        let audiences = self.audiences.iter().map(String::as_str);
        let fields: Vec<_> = fields.into_iter().chain(audiences).collect();
        Some(name("sluice_jwt_", &fields))
    }

    /// The hash of the place of the keys, which the entry point puts in place of it. `keys` is the text of the file, if
    /// the keys are in a file.
    pub fn hash_of_keys(&self, keys: &str) -> String {
        let url = match &self.jwks {
            KeySetSource::Url(url) => url.text.as_str(),
            KeySetSource::File(_) | KeySetSource::Installed(_) => "",
        };
        let ca = self.ca.as_deref().unwrap_or_default();
        let refresh = self.refresh.as_millis().to_string();
        name("", &[url, keys, ca, &refresh])
    }
}

/// A name that begins with `start` and differs between lists of fields.
fn name(start: &str, fields: &[&str]) -> String {
    let hash = keyed_hash(b"sluice/checker", |sink| {
        for field in fields {
            write_field(field.as_bytes(), sink);
        }
    });
    let mut name = start.to_owned();
    hexadecimal::push(&mut name, hash.first_chunk::<16>().unwrap_or(&[0; 16]));
    name
}
