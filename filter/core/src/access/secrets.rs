// SPDX-License-Identifier: Apache-2.0
//! The secrets with which a site verifies its clients.

use super::signing_key::SigningKeys;
use super::users::PasswordUsers;
use crate::key::secret::StoreSecret;
use crate::policy::{Policy, PolicyError};

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
    /// A secret was not sealed with `secret`. The error shows no part of it.
    pub fn open(policy: &Policy, secret: &StoreSecret) -> Result<Self, PolicyError> {
        Ok(Self {
            keys: SigningKeys::open(policy, secret)?,
            users: PasswordUsers::open(policy, secret)?,
        })
    }
}
