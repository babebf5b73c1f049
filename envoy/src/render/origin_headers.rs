// SPDX-License-Identifier: Apache-2.0
//! Headers that Envoy adds to each request to a server, with values that only Envoy knows: it reads them from its
//! environment, or from a file of the user, which it reads again when the file is replaced.

use std::path::Path;

use anyhow::{anyhow, ensure};
use minijinja::{Value, context};
use serde_json::json;
use sluice_core::policy::{HeaderSource, Policy, SetHeader};

use super::resource::Resource;

/// A header of the requests to one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginHeader {
    /// The name of the secret with the value.
    secret: String,
    header: SetHeader,
}

impl OriginHeader {
    /// The headers of the requests to the server with this name.
    ///
    /// # Errors
    /// A value is missing, or cannot be the value of a header.
    pub fn all(policy: &Policy, server: &str) -> anyhow::Result<Vec<Self>> {
        let headers = policy.request.set_headers.iter();
        let read = |header: &SetHeader| {
            check(header)?;
            let name = &header.name;
            let secret = match server {
                "" => format!("header.{name}"),
                server => format!("header.{server}.{name}"),
            };
            Ok(Self {
                secret,
                header: header.clone(),
            })
        };
        headers.map(read).collect()
    }

    /// The resource by which Envoy learns the place of the value.
    pub fn resource(&self) -> Resource {
        Resource::Header(self.secret.clone())
    }

    /// The text of the resource's file. It names the place of the value, and does not have the value.
    pub fn text(&self) -> String {
        let secret = match &self.header.source {
            HeaderSource::Environment(variable) => json!({"environment_variable": variable}),
            HeaderSource::File(path) => json!({
                "filename": path,
                "watched_directory": {"path": Path::new(path).parent()},
            }),
        };
        let resource = json!({
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
            "name": self.secret,
            "generic_secret": {"secret": secret},
        });
        json!({"resources": [resource]}).to_string() + "\n"
    }

    /// The values for the template of the server, with its file in the folder `files`.
    pub fn values(&self, files: &Path) -> Value {
        context! {
            name => self.header.name,
            secret => self.secret,
            file => self.resource().path(files),
        }
    }
}

/// Checks the value of a header. No error shows the value.
fn check(header: &SetHeader) -> anyhow::Result<()> {
    let field = format!("request.set_headers.{}", header.name);
    let (place, text) = match &header.source {
        HeaderSource::Environment(variable) => {
            let text = std::env::var_os(variable).and_then(|text| text.into_string().ok());
            let missing = || anyhow!("{field}.env: {variable}: must be set, to text");
            (
                format!("{field}.env: {variable}"),
                text.ok_or_else(missing)?,
            )
        }
        HeaderSource::File(path) => {
            let text = std::fs::read_to_string(path);
            let unreadable =
                |error| anyhow!("{field}.file: {path:?}: expected a file that is text ({error})");
            (format!("{field}.file: {path:?}"), text.map_err(unreadable)?)
        }
    };
    // Envoy leaves out the ends of lines behind the value.
    let value = text.trim_end_matches(['\r', '\n']);
    let visible = |byte: u8| matches!(byte, b' '..=b'~');
    let fits = !value.is_empty() && value.trim() == value && value.bytes().all(visible);
    ensure!(
        fits,
        "{place}: expected one line of visible characters of ASCII with spaces between them"
    );
    Ok(())
}
