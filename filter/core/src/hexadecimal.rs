// SPDX-License-Identifier: Apache-2.0
//! Numbers and bytes as hexadecimal digits.

/// Appends two digits for each byte. Each request has a link, and formatting by the standard library takes eight times
/// as long.
pub fn push(text: &mut String, bytes: &[u8]) {
    let digit = |half: u8| {
        char::from(if half < 10 {
            b'0' + half
        } else {
            b'a' - 10 + half
        })
    };
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
}

/// The number that `digits` say; `None` for anything else, or for more than 64 bits.
pub fn number(digits: &[u8]) -> Option<u64> {
    // `from_str_radix` would take a sign.
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let digits = std::str::from_utf8(digits).ok()?;
    u64::from_str_radix(digits, 16).ok()
}
