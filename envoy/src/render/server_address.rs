// SPDX-License-Identifier: Apache-2.0
//! The values that the servers of a first and of a second origin share.

use std::path::Path;
use std::time::Duration;

use minijinja::{Value, context};

use super::credentials::CredentialsPlace;
use crate::net::ca_bundle;
use crate::origin::{Endpoint, Origin};
use crate::settings::Settings;
use crate::sites::Site;

/// The place of the credentials for a `server` of a site.
pub fn credentials_place<'a>(site: &Site, server: &'a str) -> CredentialsPlace<'a> {
    CredentialsPlace {
        server,
        of_named_site: !site.name.is_empty(),
    }
}

/// The values of the address of an origin's server.
///
/// # Errors
/// CA certificates to verify the origin are missing.
pub fn address(settings: &Settings, origin: &Origin) -> anyhow::Result<Value> {
    let ca = match origin {
        Origin::Bucket(_) => &settings.aws_ca_file,
        Origin::Http(_) => &settings.ca_file,
    };
    endpoint_address(origin.endpoint(), ca.as_deref(), "an https origin")
}

/// The values of the address of a server, which is `named` so in errors. `ca` is the chosen file with CA certificates.
///
/// # Errors
/// CA certificates to verify the server are missing.
pub fn endpoint_address(
    endpoint: &Endpoint,
    ca: Option<&Path>,
    named: &str,
) -> anyhow::Result<Value> {
    let ca_file = || ca_bundle::find(ca, named);
    Ok(context! {
        host => endpoint.host,
        port => endpoint.port,
        authority => endpoint.authority(),
        is_ip => endpoint.ip().is_some(),
        tls => endpoint.tls,
        ca_file => endpoint.tls.then(ca_file).transpose()?,
    })
}

/// Default time for which an idle connection is kept. Servers of applications close theirs after five seconds, and
/// S3's servers after more than fifteen.
pub const fn usual_keepalive(origin: &Origin) -> Duration {
    match origin {
        Origin::Http(_) => Duration::from_secs(4),
        Origin::Bucket(_) => Duration::from_secs(15),
    }
}
