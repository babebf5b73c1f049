// SPDX-License-Identifier: Apache-2.0
//! Why the edge did not start.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::START_PATIENCE;
use crate::cache::CacheError;
use crate::demo::DemoError;
use crate::net::ca_bundle;
use crate::render::RenderError;

/// Why the edge did not start.
#[derive(Debug)]
pub enum RunError {
    /// Another process listens on a port.
    Port {
        /// The variable that sets the port.
        name: &'static str,
        /// The address on which the edge must listen.
        address: SocketAddr,
        /// The error of the system.
        error: io::Error,
    },
    /// A file operation failed.
    Io(PathBuf, io::Error),
    /// A program did not start.
    Spawn(&'static str, PathBuf, io::Error),
    /// A file is missing.
    Missing(&'static str, PathBuf),
    /// The cache cannot be used.
    Cache(CacheError),
    /// The embedded demo did not start.
    Demo(DemoError),
    /// Messages of SNS are taken, and there are no CA certificates to verify SNS with.
    NoCaBundle,
    /// There is no configuration for Envoy.
    Render(RenderError),
    /// Envoy has ended before it was ready.
    Ended(ExitStatus),
    /// Envoy has not become ready.
    NotReady,
}

impl RunError {
    /// The error of a file operation on `path`.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Io(path.to_owned(), error)
    }
}

impl From<CacheError> for RunError {
    fn from(error: CacheError) -> Self {
        Self::Cache(error)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port {
                name,
                address,
                error,
            } => {
                write!(
                    out,
                    "{name}={}: expected a port that is free on {}: {error}",
                    address.port(),
                    address.ip()
                )
            }
            Self::Io(path, error) => write!(out, "{}: {error}", path.display()),
            Self::Spawn(name, path, error) => write!(out, "{name}={}: {error}", path.display()),
            Self::Missing(name, path) => write!(
                out,
                "{name}={}: expected a file that exists",
                path.display()
            ),
            Self::Cache(error) => error.fmt(out),
            Self::Demo(error) => error.fmt(out),
            Self::NoCaBundle => write!(
                out,
                "SSL_CERT_FILE: must name the CA certificates that verify SNS, as none of {} exists",
                ca_bundle::USUAL_PATHS.join(", ")
            ),
            Self::Render(error) => error.fmt(out),
            Self::Ended(status) => write!(
                out,
                "Envoy ended before it was ready ({status}); its reason is above"
            ),
            Self::NotReady => write!(
                out,
                "Envoy was not ready after {} s",
                START_PATIENCE.as_secs()
            ),
        }
    }
}

impl std::error::Error for RunError {}
