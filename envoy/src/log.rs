// SPDX-License-Identifier: Apache-2.0
//! Messages of the entry point to its user.

use std::io::{self, Write as _};

/// Writes a line to standard error. Standard output belongs to the access log.
pub fn say(line: &str) {
    // Standard error may be closed; then there is nowhere to report that.
    let _ = writeln!(io::stderr(), "sluice: {line}");
}
