// SPDX-License-Identifier: Apache-2.0
//! The source of the credentials for a bucket. A secret itself is never in the file of sites.

use std::path::PathBuf;

/// The source of the credentials for a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// The standard chain: web identity, container and instance roles.
    Chain,
    /// The variables of the process's environment with these names.
    Environment {
        /// The variable with the access key's ID.
        access_key_id: String,
        /// The variable with the secret access key.
        secret_access_key: String,
        /// The variable with the session token of temporary credentials.
        session_token: Option<String>,
    },
    /// A profile in a file in the format of AWS's `credentials`. The file may change while the edge serves.
    File {
        /// The file.
        path: PathBuf,
        /// The profile's name.
        profile: String,
    },
}

impl Credentials {
    /// The variables that only this site may read. Envoy gets their values in a file, because another site's
    /// standard chain could read the variables of AWS.
    pub fn own_variables(&self) -> impl Iterator<Item = String> {
        let names = match self {
            Self::Environment {
                access_key_id,
                secret_access_key,
                session_token,
            } => [
                Some(access_key_id),
                Some(secret_access_key),
                session_token.as_ref(),
            ],
            Self::Chain | Self::File { .. } => [None; 3],
        };
        let own = names.into_iter().flatten();
        let own = own.filter(|name| !name.starts_with("AWS_"));
        own.cloned().collect::<Vec<_>>().into_iter()
    }
}
