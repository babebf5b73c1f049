// SPDX-License-Identifier: Apache-2.0
//! Random names and secrets, which cannot be guessed.

use std::io;

/// 64 random bits from the operating system, as 16 hexadecimal digits.
///
/// # Errors
/// The operating system has none.
pub fn hex() -> io::Result<String> {
    Ok(format!("{:016x}", getrandom::u64()?))
}
