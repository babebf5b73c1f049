// SPDX-License-Identifier: Apache-2.0
//! The file in which the operating system keeps the trusted CA certificates.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Returns the file with the CA certificates that verify `server`: the user's `chosen` file, or else the system's.
///
/// # Errors
/// The user has not chosen a file, and the system has none.
pub fn find(chosen: Option<&Path>, server: &str) -> anyhow::Result<PathBuf> {
    let system = || openssl_probe::probe().cert_file;
    let file = chosen.map(Path::to_owned).or_else(system);
    file.with_context(|| {
        format!(
            "SSL_CERT_FILE: must name the CA certificates that verify {server}, because the \
             system has none where systems keep them"
        )
    })
}
