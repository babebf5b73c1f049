// SPDX-License-Identifier: Apache-2.0
//! Why the edge did not start.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitStatus;

use super::START_PATIENCE;
use crate::ca_bundle;
use crate::cache_folder::CacheFolderError;
use crate::demo::DemoError;
use crate::render::RenderError;
use crate::reserve::Reserve;
use crate::size::Size;

/// Why the edge did not start.
#[derive(Debug)]
pub enum RunError {
    /// Somebody else listens there.
    Port {
        /// The variable that says which port.
        name: &'static str,
        /// Where the edge wanted to listen.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// A file operation failed.
    Io(PathBuf, io::Error),
    /// A program did not start.
    Spawn(&'static str, PathBuf, io::Error),
    /// Something is missing.
    Missing(&'static str, PathBuf),
    /// The cache's folder is not to be had.
    CacheFolder(CacheFolderError),
    /// More is to stay free than half of the file system.
    Reserve {
        /// What is to stay free.
        reserve: Reserve,
        /// Where.
        path: PathBuf,
        /// Half of that file system, in bytes.
        most: u64,
    },
    /// The embedded demo did not start.
    Demo(DemoError),
    /// Messages of SNS are to be taken, and there is nothing to verify SNS with.
    NoCaBundle,
    /// There is no configuration.
    Render(RenderError),
    /// Envoy has ended before it was ready.
    Ended(ExitStatus),
    /// Envoy has not become ready.
    NotReady,
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
            Self::CacheFolder(error) => error.fmt(out),
            Self::Reserve {
                reserve,
                path,
                most,
            } => write!(
                out,
                "CACHE_RESERVE={reserve}: expected at most {}, half of the file system of {}",
                Size(*most),
                path.display()
            ),
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
