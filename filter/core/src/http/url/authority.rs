// SPDX-License-Identifier: Apache-2.0
//! The authority of a request, in one canonical spelling. Anything but `host[:port]` is rejected.

use std::io::Write as _;
use std::net::Ipv6Addr;

use crate::http::url::rejection::Rejection;

/// Longest host name (RFC 1035, 2.3.4).
const MAX_HOST_BYTES: usize = 255;

/// Appends the canonical spelling of `raw`: in lower case, without a trailing dot, and without a port that `scheme`
/// implies (RFC 3986, 6.2.2.1 and 6.2.3). A name has letters, digits, `-`, `_` and `.` only, so user information and
/// escapes are rejected.
pub(crate) fn append_authority(
    out: &mut Vec<u8>,
    raw: &[u8],
    scheme: Option<&str>,
) -> Result<(), Rejection> {
    let port = if let Some(literal) = raw.strip_prefix(b"[") {
        let (address, rest) = split_at_byte(literal, b']').ok_or(Rejection::Authority)?;
        let address = std::str::from_utf8(address).ok();
        let address: Option<Ipv6Addr> = address.and_then(|text| text.parse().ok());
        let address = address.ok_or(Rejection::Authority)?;
        write!(out, "[{address}]").map_err(|_| Rejection::Authority)?;
        match rest {
            [] => rest,
            [b':', port @ ..] => port,
            _ => return Err(Rejection::Authority),
        }
    } else {
        let (name, port) = split_at_byte(raw, b':').unwrap_or((raw, b""));
        append_name(out, name)?;
        port
    };
    append_port(out, port, scheme)
}

fn split_at_byte(bytes: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|&candidate| candidate == byte)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

fn append_name(out: &mut Vec<u8>, name: &[u8]) -> Result<(), Rejection> {
    let name = name.strip_suffix(b".").unwrap_or(name);
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_label = |label: &[u8]| !label.is_empty() && label.iter().all(is_inner);
    if name.len() > MAX_HOST_BYTES || !name.split(|&byte| byte == b'.').all(is_label) {
        return Err(Rejection::Authority);
    }
    out.extend(name.iter().map(u8::to_ascii_lowercase));
    Ok(())
}

fn append_port(out: &mut Vec<u8>, port: &[u8], scheme: Option<&str>) -> Result<(), Rejection> {
    if port.is_empty() {
        return Ok(());
    }
    // The standard library accepts a sign.
    let is_number = port.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(port).ok().filter(|_| is_number);
    let number: Option<u16> = number.and_then(|digits| digits.parse().ok());
    let number = number.ok_or(Rejection::Authority)?;
    match (number, scheme) {
        (0, _) => Err(Rejection::Authority),
        (80, Some("http")) | (443, Some("https")) => Ok(()),
        _ => {
            // Formatting by the standard library would cost more on each request.
            out.push(b':');
            out.extend(port.iter().skip_while(|&&digit| digit == b'0'));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::http::url::authority::*;

    fn canonical(raw: &str, scheme: Option<&str>) -> Result<String, Rejection> {
        let mut out = Vec::new();
        append_authority(&mut out, raw.as_bytes(), scheme)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn an_authority_has_one_spelling() {
        for (name, raw, scheme, expected) in [
            ("as it is", "example.com", None, "example.com"),
            ("upper case", "EXAMPLE.Com", None, "example.com"),
            ("trailing dot", "example.com.", None, "example.com"),
            (
                "trailing dot before a port",
                "example.com.:8080",
                None,
                "example.com:8080",
            ),
            ("underscore", "my_service", None, "my_service"),
            (
                "punycode",
                "XN--bcher-kva.example",
                None,
                "xn--bcher-kva.example",
            ),
            ("IPv4", "127.0.0.1:8080", Some("http"), "127.0.0.1:8080"),
            ("IPv6", "[::1]", None, "[::1]"),
            (
                "IPv6 at length",
                "[0:0:0:0:0:0:0:1]:8080",
                None,
                "[::1]:8080",
            ),
            ("IPv6 in upper case", "[2001:DB8::A]", None, "[2001:db8::a]"),
            ("empty port", "example.com:", Some("http"), "example.com"),
            (
                "port of http",
                "example.com:80",
                Some("http"),
                "example.com",
            ),
            (
                "port of https",
                "example.com:443",
                Some("https"),
                "example.com",
            ),
            (
                "port of the other scheme",
                "example.com:443",
                Some("http"),
                "example.com:443",
            ),
            (
                "port without a scheme",
                "example.com:80",
                None,
                "example.com:80",
            ),
            (
                "leading zeros in a port",
                "example.com:0080",
                Some("http"),
                "example.com",
            ),
            (
                "highest port",
                "example.com:65535",
                None,
                "example.com:65535",
            ),
        ] {
            assert_eq!(canonical(raw, scheme).as_deref(), Ok(expected), "{name}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let long = "a".repeat(256);
        for (name, raw) in [
            ("empty", ""),
            ("only a port", ":80"),
            ("only a dot", "."),
            ("two trailing dots", "example.com.."),
            ("leading dot", ".example.com"),
            ("empty label", "example..com"),
            // A host in Envoy's configuration has this name, for the filter's own requests.
            ("sign", "next+turn"),
            ("user", "user@example.com"),
            ("user and password", "user:secret@example.com"),
            ("two ports", "example.com:80:80"),
            ("two hosts", "example.com,example.org"),
            ("port 0", "example.com:0"),
            ("port too high", "example.com:65536"),
            ("port much too high", "example.com:99999999999999999999"),
            ("signed port", "example.com:+80"),
            ("port in letters", "example.com:http"),
            ("space", "example .com"),
            ("space around", " example.com"),
            ("tab", "example.com\t"),
            ("NUL", "example.com\0"),
            ("line feed", "example.com\n"),
            ("slash", "example.com/x"),
            ("backslash", "example.com\\x"),
            ("query", "example.com?x"),
            ("fragment", "example.com#x"),
            ("escape", "ex%61mple.com"),
            ("beyond ASCII", "exämple.com"),
            ("open bracket", "[::1"),
            ("closed bracket", "::1]"),
            ("IPv6 without brackets", "::1"),
            ("empty brackets", "[]"),
            ("name in brackets", "[example.com]"),
            ("IPv4 in brackets", "[127.0.0.1]"),
            ("zone", "[fe80::1%25eth0]"),
            ("more after brackets", "[::1]x"),
            ("future address", "[v1.x]"),
            ("too long", &long),
        ] {
            assert_eq!(
                canonical(raw, Some("http")),
                Err(Rejection::Authority),
                "{name}"
            );
        }
    }
}
