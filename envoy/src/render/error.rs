// SPDX-License-Identifier: Apache-2.0
//! Why there is no configuration for Envoy.

use std::fmt;

use super::policy_document::PolicyDocumentError;
use crate::net::ca_bundle;

/// Why there is no configuration for Envoy.
#[derive(Debug)]
pub enum RenderError {
    /// The policy cannot be used.
    Policy(PolicyDocumentError),
    /// The origin is `https`, and there are no CA certificates to verify it with.
    NoCaBundle,
    /// The template and the code disagree.
    Template(minijinja::Error),
}

impl From<PolicyDocumentError> for RenderError {
    fn from(error: PolicyDocumentError) -> Self {
        Self::Policy(error)
    }
}

impl fmt::Display for RenderError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(error) => error.fmt(out),
            Self::NoCaBundle => write!(
                out,
                "SSL_CERT_FILE: must name the CA certificates that verify an https origin, as none of {} exists",
                ca_bundle::USUAL_PATHS.join(", ")
            ),
            Self::Template(error) => write!(out, "envoy.yaml.j2: {error:#}"),
        }
    }
}

impl std::error::Error for RenderError {}
