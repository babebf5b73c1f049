// SPDX-License-Identifier: Apache-2.0
//! The names of hosts and paths, and the hosts that a certificate's names cover.

use std::net::Ipv4Addr;

/// Longest name of a host, in bytes (RFC 1035, section 3.1).
const LONGEST_HOST: usize = 253;
/// Longest label of a host, in bytes.
const LONGEST_LABEL: usize = 63;

/// Whether a text is the name of a host or an IPv4 address, or `*.` and a name.
pub fn is_host_pattern(text: &str) -> bool {
    match text.strip_prefix("*.") {
        Some(name) => is_host(name) && name.parse::<Ipv4Addr>().is_err(),
        None => is_host(text),
    }
}

fn is_host(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_label = |label: &str| {
        (1..=LONGEST_LABEL).contains(&label.len())
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= LONGEST_HOST && name.split('.').all(is_label)
}

/// Whether a text is a path prefix that has only one spelling.
pub fn is_path(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_segment =
        |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(is_inner);
    let segments = text.strip_prefix('/');
    segments.is_some_and(|segments| segments.split('/').all(is_segment))
}

/// Whether a certificate's name covers a host, or all hosts that match a `*.` host (RFC 9525, section 6.3). In both
/// a `*` matches one label.
pub fn covers(certified: &str, host: &str) -> bool {
    let certified = certified.to_ascii_lowercase();
    if certified == host {
        return true;
    }
    let below = certified.strip_prefix("*.");
    let parent = host.split_once('.');
    match (below, parent) {
        (Some(below), Some((label, parent))) => label != "*" && below == parent,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_without_ports() {
        for host in [
            "a.test",
            "A.Test",
            "*.a.test",
            "127.0.0.1",
            "my_host",
            "xn--bcher-kva.example",
            "*.test",
        ] {
            assert!(is_host_pattern(host), "{host}");
        }
        for host in [
            "",
            "*",
            "*.",
            "a.test:80",
            "a.test.",
            "a..test",
            "-a.test",
            "[::1]",
            "::1",
            "*.127.0.0.1",
            "a*.test",
            "*.*.test",
            "a.*.test",
            "bücher.example",
            "http://a.test",
            "a.test/",
            "a b",
            "%61.test",
        ] {
            assert!(!is_host_pattern(host), "{host}");
        }
    }

    #[test]
    fn paths_are_whole_segments_in_one_spelling() {
        for path in ["/a", "/a/b-c/d_e~f.g", "/.well-known", "/..."] {
            assert!(is_path(path), "{path}");
        }
        for path in [
            "", "/", "a", "/a/", "//a", "/a//b", "/.", "/a/..", "/a/../b", "/%61", "/a b", "/a?b",
            "/a#b", "/*", "/é",
        ] {
            assert!(!is_path(path), "{path}");
        }
    }

    #[test]
    fn a_wildcard_of_a_certificate_covers_one_label() {
        for (certified, host, expected) in [
            ("a.test", "a.test", true),
            ("A.test", "a.test", true),
            ("*.a.test", "b.a.test", true),
            ("*.a.test", "*.a.test", true),
            ("*.a.test", "a.test", false),
            ("*.a.test", "c.b.a.test", false),
            ("*.test", "*.a.test", false),
            ("b.a.test", "*.a.test", false),
        ] {
            assert_eq!(covers(certified, host), expected, "{certified} {host}");
        }
    }
}
