// SPDX-License-Identifier: Apache-2.0
//! The secrets with which a site verifies its clients.

use super::signing_key::SigningKeys;
use super::users::PasswordUsers;
use crate::key::secret::StoreSecret;
use crate::policy::{KeySetSource, Policy, PolicyError};

/// The secrets of a site.
#[derive(Clone, Debug, Default)]
pub struct AccessSecrets {
    /// The keys of its signed URLs.
    pub keys: SigningKeys,
    /// The users of its scheme Basic.
    pub users: PasswordUsers,
}

impl AccessSecrets {
    /// Opens the sealed secrets of a policy.
    ///
    /// # Errors
    /// A secret was not sealed with `secret`, or the keys of an issuer of tokens are not installed in this Envoy. The
    /// error shows no part of a secret.
    pub fn open(policy: &Policy, secret: &StoreSecret) -> Result<Self, PolicyError> {
        let jwt = policy.access.as_ref().and_then(|access| access.jwt());
        if jwt.is_some_and(|jwt| !matches!(jwt.jwks, KeySetSource::Installed(_))) {
            let expected = "expected a standalone edge: in a mesh, RequestAuthentication of Istio verifies tokens";
            return Err(PolicyError::new("access.any_of.jwt", expected));
        }
        Ok(Self {
            keys: SigningKeys::open(policy, secret)?,
            users: PasswordUsers::open(policy, secret)?,
        })
    }
}
