// SPDX-License-Identifier: Apache-2.0
//! The cluster of a server that decides about access.

use super::grant::write_field;
use crate::hexadecimal;
use crate::key::secret::keyed_hash;
use crate::policy::ForwardPolicy;

impl ForwardPolicy {
    /// The name of the server's cluster in Envoy. It differs between sites and between settings, so that no question
    /// under a new policy reaches a former server.
    pub fn cluster(&self, site: &str) -> String {
        let ca = self.ca.as_deref().unwrap_or_default();
        let hash = keyed_hash(b"sluice/forward", |sink| {
            for field in [site, &self.url.text, ca] {
                write_field(field.as_bytes(), sink);
            }
        });
        let mut name = "sluice_forward_".to_owned();
        hexadecimal::push(&mut name, hash.first_chunk::<16>().unwrap_or(&[0; 16]));
        name
    }
}
