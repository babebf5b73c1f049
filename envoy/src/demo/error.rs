// SPDX-License-Identifier: Apache-2.0
//! Why there is no demo.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why there is no demo.
#[derive(Debug, Error)]
pub enum DemoError {
    /// There is neither an origin nor a MinIO for the demo.
    #[error(
        "ORIGIN: must be set to s3://BUCKET[/PREFIX], http://HOST[:PORT] or https://HOST[:PORT], \
         as SLUICE_MINIO names no MinIO for the demo"
    )]
    NoOrigin,
    /// A file operation failed.
    #[error("{0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// Another edge runs its demo in the same state folder.
    #[error(
        "SLUICE_STATE={0}: another edge is running its demo in this folder; each needs one of its own"
    )]
    InUse(PathBuf),
    /// MinIO did not start.
    #[error("SLUICE_MINIO={0}: {1}")]
    Spawn(PathBuf, #[source] io::Error),
    /// MinIO ended before it was ready, or did not become ready.
    #[error("MinIO did not start; it says why in {0}")]
    NotReady(PathBuf),
    /// MinIO refused the demo's site.
    #[error("MinIO refused the demo's site: {0}")]
    Refused(String),
}
