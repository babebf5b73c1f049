// SPDX-License-Identifier: Apache-2.0
//! The way in which Envoy gets the credentials of a site's bucket: from its environment, or from a file with a
//! profile.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::anyhow;
use minijinja::{Value, context};

use super::resource::Resource;
use crate::settings::ACCESS_KEY_ID;
use crate::sites::Credentials;

/// The place at which Envoy reads credentials from a file of the edge.
#[derive(Clone, Copy, Debug)]
pub struct CredentialsPlace<'a> {
    /// The name of the server that the credentials are for.
    pub server: &'a str,
    /// Whether the server belongs to a site of the file of sites. Envoy's own variables belong to the one site of
    /// `SLUICE_ORIGIN`.
    pub of_named_site: bool,
}

impl CredentialsPlace<'_> {
    /// Whether Envoy finds the key in its own environment.
    fn is_environment(self, access_key_id: &str) -> bool {
        !self.of_named_site && access_key_id == ACCESS_KEY_ID
    }
}

/// The values of the provider of these credentials. Credentials from variables are in a file among the edge's `files`.
/// Without values Envoy uses the standard chain.
pub fn provider(credentials: &Credentials, place: CredentialsPlace<'_>, files: &Path) -> Value {
    let from_file = |file: &Path, profile: &str| {
        context! { file => file, folder => file.parent(), profile => profile }
    };
    match credentials {
        Credentials::Chain => Value::from(()),
        Credentials::File { path, profile } => from_file(path, profile),
        Credentials::Environment { access_key_id, .. } if place.is_environment(access_key_id) => {
            Value::from("environment")
        }
        Credentials::Environment { .. } => {
            let own = Resource::Credentials(place.server.to_owned()).path(files);
            from_file(&own, place.server)
        }
    }
}

/// The profile with these credentials in the format of AWS's `credentials`, if they are in variables, which `lookup`
/// finds. `None`: Envoy gets the credentials in another way.
///
/// # Errors
/// A variable is missing, or its value cannot be written in such a file.
pub fn profile(
    credentials: &Credentials,
    place: CredentialsPlace<'_>,
    lookup: &dyn Fn(&str) -> Option<OsString>,
) -> anyhow::Result<Option<String>> {
    let Credentials::Environment {
        access_key_id,
        secret_access_key,
        session_token,
    } = credentials
    else {
        return Ok(None);
    };
    if place.is_environment(access_key_id) {
        return Ok(None);
    }
    let server = place.server;
    let mut text = format!("[{server}]\n");
    let fields = [
        ("aws_access_key_id", Some(access_key_id)),
        ("aws_secret_access_key", Some(secret_access_key)),
        ("aws_session_token", session_token.as_ref()),
    ];
    for (field, variable) in fields {
        let Some(variable) = variable else { continue };
        let value = value(variable, lookup)?;
        let _ = writeln!(text, "{field} = {value}");
    }
    Ok(Some(text))
}

/// The value of a variable with a part of credentials. No error shows the value.
fn value(variable: &str, lookup: &dyn Fn(&str) -> Option<OsString>) -> anyhow::Result<String> {
    let refused = || anyhow!("{variable}: must be set, to visible characters of ASCII");
    let value = lookup(variable).and_then(|value| value.into_string().ok());
    let visible =
        |value: &String| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
    value.filter(visible).ok_or_else(refused)
}
