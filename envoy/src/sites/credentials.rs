// SPDX-License-Identifier: Apache-2.0
//! Where the credentials for a bucket come from. A secret itself is never in the file of sites.

use std::path::PathBuf;

/// Where the credentials for a bucket come from.
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
    /// A profile of a file in the format of AWS's `credentials`, which may change while the edge serves.
    File {
        /// The file.
        path: PathBuf,
        /// The profile's name.
        profile: String,
    },
}
