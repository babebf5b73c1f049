// SPDX-License-Identifier: Apache-2.0
//! The authority of a request: one spelling of each, and nothing that is not `host[:port]`.

use std::io::Write as _;
use std::net::Ipv6Addr;

use crate::rejection::Rejection;

/// Longest host name (RFC 1035, 2.3.4).
const MAX_HOST_BYTES: usize = 255;

/// Appends the canonical spelling of `raw`: in lower case, without a trailing dot, without a port
/// that `scheme` implies (RFC 3986, 6.2.2.1 and 6.2.3). Names are letters, digits, `-`, `_` and
/// `.`: no user, no escapes.
pub(crate) fn append_authority(
    out: &mut Vec<u8>,
    raw: &[u8],
    scheme: Option<&str>,
) -> Result<(), Rejection> {
    let port = match raw.strip_prefix(b"[") {
        Some(literal) => {
            let (address, port) = split_at_byte(literal, b']').ok_or(Rejection::Authority)?;
            let address = std::str::from_utf8(address)
                .ok()
                .and_then(|text| text.parse::<Ipv6Addr>().ok());
            let address = address.ok_or(Rejection::Authority)?;
            write!(out, "[{address}]").map_err(|_| Rejection::Authority)?;
            match port {
                [] => None,
                [b':', port @ ..] => Some(port),
                _ => return Err(Rejection::Authority),
            }
        }
        None => {
            let (name, port) = match split_at_byte(raw, b':') {
                Some((name, port)) => (name, Some(port)),
                None => (raw, None),
            };
            append_name(out, name)?;
            port
        }
    };
    append_port(out, port.unwrap_or_default(), scheme)
}

fn split_at_byte(bytes: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|&candidate| candidate == byte)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

fn append_name(out: &mut Vec<u8>, name: &[u8]) -> Result<(), Rejection> {
    let name = name.strip_suffix(b".").unwrap_or(name);
    if name.len() > MAX_HOST_BYTES {
        return Err(Rejection::Authority);
    }
    let mut label_is_empty = true;
    for &byte in name {
        match byte {
            b'.' if label_is_empty => return Err(Rejection::Authority),
            b'.' => label_is_empty = true,
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => label_is_empty = false,
            _ => return Err(Rejection::Authority),
        }
        out.push(byte.to_ascii_lowercase());
    }
    if label_is_empty {
        Err(Rejection::Authority)
    } else {
        Ok(())
    }
}

fn append_port(out: &mut Vec<u8>, port: &[u8], scheme: Option<&str>) -> Result<(), Rejection> {
    if port.is_empty() {
        return Ok(());
    }
    let mut number: u16 = 0;
    for &byte in port {
        let digit = if byte.is_ascii_digit() {
            u16::from(byte - b'0')
        } else {
            return Err(Rejection::Authority);
        };
        number = number
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(digit))
            .ok_or(Rejection::Authority)?;
    }
    match (number, scheme) {
        (0, _) => Err(Rejection::Authority),
        (80, Some("http")) | (443, Some("https")) => Ok(()),
        _ => write!(out, ":{number}").map_err(|_| Rejection::Authority),
    }
}
