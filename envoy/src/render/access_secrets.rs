// SPDX-License-Identifier: Apache-2.0
//! The secrets of access rules in the configuration of the filter: the keys of signed URLs, and users with the hashes
//! of their passwords. A dump of Envoy's configuration shows it, so they
//! are sealed with a secret that only Envoy's environment has. They are not in that environment themselves, because
//! a reload may change them.

use serde_json::{Value, json};
use sluice_core::access::sealed_key::{KeyPlace, SealedKey};
use sluice_core::access::users::PasswordUsers;
use sluice_core::key::secret::StoreSecret;

use crate::sites::{Site, Sites};

/// Puts the sealed secrets of all sites in place of their sources.
pub fn seal(configuration: &mut Value, sites: &Sites, secret: &StoreSecret) {
    match configuration.get_mut("sites").and_then(Value::as_array_mut) {
        Some(described) => {
            for (described, site) in described.iter_mut().zip(&sites.sites) {
                if let Some(policy) = described.get_mut("policy") {
                    seal_secrets(policy, site, secret);
                }
            }
        }
        None => {
            let site = sites.sites.first();
            site.into_iter()
                .for_each(|site| seal_secrets(configuration, site, secret));
        }
    }
}

fn seal_secrets(policy: &mut Value, site: &Site, secret: &StoreSecret) {
    let schemes = policy
        .pointer_mut("/access/any_of")
        .and_then(Value::as_array_mut);
    let Some(access) = &site.access else { return };
    for scheme in schemes.into_iter().flatten() {
        if let (Some(users), Some(basic)) = (&access.users, scheme.get_mut("basic")) {
            let sealed = PasswordUsers::seal(secret, &site.name, users.text());
            if let Some(basic) = basic.as_object_mut() {
                basic.insert("users".to_owned(), json!({"sealed": sealed.to_string()}));
            }
        }
        let entries = scheme
            .pointer_mut("/signed/keys")
            .and_then(Value::as_object_mut);
        let Some(entries) = entries else { continue };
        for key in &access.keys {
            let place = KeyPlace {
                site: &site.name,
                name: &key.name,
            };
            let sealed = SealedKey::seal(secret, &place, key.bytes());
            entries.insert(key.name.clone(), json!({"sealed": sealed.to_string()}));
        }
    }
}
