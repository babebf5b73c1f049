// SPDX-License-Identifier: Apache-2.0
//! The server of the scheme forward.

use std::path::PathBuf;

use sluice_core::policy::{AccessPolicy, CheckerUrl, ForwardPolicy};

use crate::origin::Endpoint;
use crate::sites::file::Document;

/// The server that is asked about clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckerServer {
    /// The settings of the scheme.
    pub policy: ForwardPolicy,
    /// The address of the server.
    pub endpoint: Endpoint,
    /// The file with the CA certificates that verify the server.
    pub ca: Option<PathBuf>,
}

impl CheckerServer {
    /// The server of these rules, if they have one. Its files are beside `document`.
    ///
    /// # Errors
    /// The path of the field, and the reason.
    pub fn of(
        policy: &AccessPolicy,
        document: &Document,
    ) -> Result<Option<Self>, (&'static str, String)> {
        let Some(forward) = policy.forward() else {
            return Ok(None);
        };
        let (endpoint, ca) = find_server(&forward.url, forward.ca.as_deref(), document)?;
        Ok(Some(Self {
            policy: forward.clone(),
            endpoint,
            ca,
        }))
    }
}

/// The address of the server of a URL, and the file with its CA certificates, which is beside `document`.
///
/// # Errors
/// The name of the field, `url` or `ca`, and the reason.
pub(super) fn find_server(
    url: &CheckerUrl,
    ca: Option<&str>,
    document: &Document,
) -> Result<(Endpoint, Option<PathBuf>), (&'static str, String)> {
    let scheme = if url.is_secure { "https" } else { "http" };
    let server = format!("{scheme}://{}", url.authority);
    let endpoint = Endpoint::parse(&server).ok_or_else(|| {
        let expected = format!("{server:?}: expected the URL of a server");
        ("url", expected)
    })?;
    let ca = ca.map(|file| document.path(file));
    if let Some(file) = &ca {
        let shown = file.display();
        if !endpoint.tls {
            return Err(("ca", "expected a URL with https".to_owned()));
        }
        std::fs::File::open(file).map_err(|error| {
            (
                "ca",
                format!("{shown}: expected a file that can be read ({error})"),
            )
        })?;
    }
    Ok((endpoint, ca))
}
