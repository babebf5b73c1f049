// SPDX-License-Identifier: Apache-2.0
//! Why the edge did not start.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use thiserror::Error;

use super::START_PATIENCE;
use crate::cache::CacheError;
use crate::demo::DemoError;
use crate::net::ca_bundle;
use crate::render::RenderError;

/// Why the edge did not start.
#[derive(Debug, Error)]
pub enum RunError {
    /// Another process listens on a port.
    #[error("{name}={}: expected a port that is free on {}: {error}", address.port(), address.ip())]
    Port {
        /// The variable that sets the port.
        name: &'static str,
        /// The address on which the edge must listen.
        address: SocketAddr,
        /// The error of the system.
        error: io::Error,
    },
    /// A file operation failed.
    #[error("{0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// A program did not start.
    #[error("{0}={1}: {2}")]
    Spawn(&'static str, PathBuf, #[source] io::Error),
    /// A file is missing.
    #[error("{0}={1}: expected a file that exists")]
    Missing(&'static str, PathBuf),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The embedded demo did not start.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// Messages of SNS are taken, and there are no CA certificates to verify SNS with.
    #[error(
        "SSL_CERT_FILE: must name the CA certificates that verify SNS, as none of {} exists",
        ca_bundle::USUAL_PATHS.join(", ")
    )]
    NoCaBundle,
    /// There is no configuration for Envoy.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// Envoy has ended before it was ready.
    #[error("Envoy ended before it was ready ({0}); its reason is above")]
    Ended(ExitStatus),
    /// Envoy has not become ready.
    #[error("Envoy was not ready after {} s", START_PATIENCE.as_secs())]
    NotReady,
}

impl RunError {
    /// The error of a file operation on `path`.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Io(path.to_owned(), error)
    }
}
