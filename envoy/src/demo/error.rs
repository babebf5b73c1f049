// SPDX-License-Identifier: Apache-2.0
//! Why there is no demo.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why there is no demo.
#[derive(Debug)]
pub enum DemoError {
    /// Neither an origin nor a MinIO to stand in for one.
    NoOrigin,
    /// A file operation failed.
    Io(PathBuf, io::Error),
    /// Another edge runs its demo in the same state folder.
    InUse(PathBuf),
    /// MinIO did not start.
    Spawn(PathBuf, io::Error),
    /// MinIO ended before it was ready, or did not become ready.
    NotReady(PathBuf),
    /// MinIO refused the demo's site.
    Refused(String),
}

impl fmt::Display for DemoError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOrigin => out.write_str(
                "ORIGIN: must be set to s3://BUCKET[/PREFIX], http://HOST[:PORT] or https://HOST[:PORT], \
                 as SLUICE_MINIO names no MinIO for the demo",
            ),
            Self::Io(path, error) => write!(out, "{}: {error}", path.display()),
            Self::InUse(path) => write!(
                out,
                "SLUICE_STATE={}: another edge is running its demo in this folder; each needs one of its own",
                path.display()
            ),
            Self::Spawn(path, error) => write!(out, "SLUICE_MINIO={}: {error}", path.display()),
            Self::NotReady(log) => write!(out, "MinIO did not start; it says why in {}", log.display()),
            Self::Refused(what) => write!(out, "MinIO refused the demo's site: {what}"),
        }
    }
}

impl std::error::Error for DemoError {}
