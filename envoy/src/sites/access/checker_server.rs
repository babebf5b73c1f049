// SPDX-License-Identifier: Apache-2.0
//! The server of the scheme forward.

use std::path::PathBuf;

use sluice_core::policy::{AccessPolicy, ForwardPolicy};

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
        let scheme = if forward.url.is_secure {
            "https"
        } else {
            "http"
        };
        let server = format!("{scheme}://{}", forward.url.authority);
        let endpoint = Endpoint::parse(&server).ok_or_else(|| {
            let expected = format!("{server:?}: expected the URL of a server");
            ("url", expected)
        })?;
        let ca = forward.ca.as_ref().map(|file| document.path(file));
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
        Ok(Some(Self {
            policy: forward.clone(),
            endpoint,
            ca,
        }))
    }
}
