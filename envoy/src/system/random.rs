// SPDX-License-Identifier: Apache-2.0
//! Names and secrets that nobody can guess.

use std::fmt::Write as _;
use std::io;

/// `BYTES` random bytes from the operating system, in hexadecimal.
///
/// # Errors
/// The operating system has none.
pub fn hex<const BYTES: usize>() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(bytes
        .iter()
        .fold(String::with_capacity(BYTES * 2), |mut text, byte| {
            // NB: writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        }))
}
