// SPDX-License-Identifier: Apache-2.0
//! The way in which Envoy gets the credentials of a site's bucket: from its environment, or from a file with a
//! profile.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::anyhow;
use minijinja::{Value, context};

use super::resource::Resource;
use crate::sites::{Credentials, Site};

/// The values of the credential provider for a site's `server`. Credentials from variables are in a file among the
/// edge's `files`. Without values Envoy uses the standard chain.
pub fn provider(site: &Site, server: &str, files: &Path) -> Value {
    let from_file = |file: &Path, profile: &str| {
        context! { file => file, folder => file.parent(), profile => profile }
    };
    match &site.credentials {
        Credentials::Chain => Value::from(()),
        Credentials::File { path, profile } => from_file(path, profile),
        // Envoy's own variables belong to the one site of `SLUICE_ORIGIN`.
        Credentials::Environment { .. } if site.name.is_empty() => Value::from("environment"),
        Credentials::Environment { .. } => {
            let own = Resource::Credentials(server.to_owned()).path(files);
            from_file(&own, server)
        }
    }
}

/// The profile of a site's `server` in the format of AWS's `credentials`, if the credentials are in variables,
/// which `lookup` finds. `None`: Envoy gets the credentials in another way.
///
/// # Errors
/// A variable is missing, or its value cannot be written in such a file.
pub fn profile(
    site: &Site,
    server: &str,
    lookup: &dyn Fn(&str) -> Option<OsString>,
) -> anyhow::Result<Option<String>> {
    let Credentials::Environment {
        access_key_id,
        secret_access_key,
        session_token,
    } = &site.credentials
    else {
        return Ok(None);
    };
    if site.name.is_empty() {
        return Ok(None);
    }
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
