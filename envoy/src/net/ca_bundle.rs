// SPDX-License-Identifier: Apache-2.0
//! The files in which systems keep the CA certificates that they trust.

use std::path::Path;

/// The files of Debian and Ubuntu, Fedora and Red Hat, SUSE, and Alpine.
pub const USUAL_PATHS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The system's bundle, if it has one.
pub fn find() -> Option<&'static str> {
    USUAL_PATHS
        .into_iter()
        .find(|path| Path::new(path).is_file())
}
