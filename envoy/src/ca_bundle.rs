// SPDX-License-Identifier: Apache-2.0
//! Where systems keep the CA certificates they trust.

use std::path::Path;

/// Debian and Ubuntu, Fedora and Red Hat, SUSE, Alpine.
pub const USUAL_PATHS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The system's bundle.
pub fn find() -> Option<&'static str> {
    USUAL_PATHS
        .into_iter()
        .find(|path| Path::new(path).is_file())
}
