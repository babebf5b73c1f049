// SPDX-License-Identifier: Apache-2.0
//! The keys that sign the requests to a site's bucket.

use std::ffi::OsString;

use anyhow::Context as _;
use rusty_s3::Credentials as Keys;

use super::{Credentials, ProfileKeys};

/// The keys that a site's credentials name, for requests that no edge signs.
///
/// # Errors
/// As [`bucket_keys`], or the site uses the standard chain.
pub fn own_bucket_keys(
    credentials: &Credentials,
    lookup: &dyn Fn(&str) -> Option<OsString>,
) -> anyhow::Result<Keys> {
    bucket_keys(credentials, lookup)?.context(
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: must be set, or `credentials` of the site, because only Envoy \
         gets the keys of roles: `aws configure export-credentials --format env` prints those of a role",
    )
}

/// The keys that a site's credentials name. `None`: the site uses the standard chain, and only Envoy can get those
/// keys. `lookup` finds the environment's variables.
///
/// # Errors
/// A variable is not set, or the file does not have the profile.
pub fn bucket_keys(
    credentials: &Credentials,
    lookup: &dyn Fn(&str) -> Option<OsString>,
) -> anyhow::Result<Option<Keys>> {
    let variable = |name: &str| {
        let value = lookup(name).and_then(|value| value.into_string().ok());
        value.with_context(|| format!("{name}: must be set"))
    };
    let (id, secret, token) = match credentials {
        Credentials::Chain => return Ok(None),
        Credentials::Environment {
            access_key_id,
            secret_access_key,
            session_token,
        } => {
            let token = session_token.as_deref().map(variable).transpose()?;
            (
                variable(access_key_id)?,
                variable(secret_access_key)?,
                token,
            )
        }
        Credentials::File { path, profile } => {
            let keys = ProfileKeys::read(path, profile);
            let keys = keys.with_context(|| path.display().to_string())?;
            (
                keys.access_key_id,
                keys.secret_access_key,
                keys.session_token,
            )
        }
    };
    Ok(Some(match token {
        Some(token) => Keys::new_with_token(id, secret, token),
        None => Keys::new(id, secret),
    }))
}
