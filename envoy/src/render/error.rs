// SPDX-License-Identifier: Apache-2.0
//! Why there is no configuration for Envoy.

use thiserror::Error;

use super::policy_document::PolicyDocumentError;
use crate::net::ca_bundle;

/// Why there is no configuration for Envoy.
#[derive(Debug, Error)]
pub enum RenderError {
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyDocumentError),
    /// The origin is `https`, and there are no CA certificates to verify it with.
    #[error(
        "SSL_CERT_FILE: must name the CA certificates that verify an https origin, as none of {} exists",
        ca_bundle::USUAL_PATHS.join(", ")
    )]
    NoCaBundle,
    /// The template and the code disagree.
    #[error("envoy.yaml.j2: {0:#}")]
    Template(#[source] minijinja::Error),
}
