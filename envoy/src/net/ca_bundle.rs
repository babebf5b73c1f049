// SPDX-License-Identifier: Apache-2.0
//! The files in which operating systems keep the trusted CA certificates.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The files of Debian and Ubuntu, Fedora and Red Hat, SUSE, and Alpine.
const USUAL_PATHS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The file with the CA certificates that verify `server`: the user's `chosen` file, or else the system's.
///
/// # Errors
/// The user has not chosen a file, and the system has none.
pub fn find(chosen: Option<&Path>, server: &str) -> anyhow::Result<PathBuf> {
    let mut usual = USUAL_PATHS.iter().map(Path::new);
    let file = chosen.or_else(|| usual.find(|path| path.is_file()));
    file.map(Path::to_owned).with_context(|| {
        let usual = USUAL_PATHS.join(", ");
        format!(
            "SSL_CERT_FILE: must name the CA certificates that verify {server}, as none of {usual} \
             exists"
        )
    })
}
