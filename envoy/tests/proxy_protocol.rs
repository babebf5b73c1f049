// SPDX-License-Identifier: Apache-2.0
//! The PROXY protocol: a listed load balancer names its client, and any other client has no connection.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};

use support::edge::{Edge, Variables};
use support::modules::APPROVING;
use support::origin::Origin;
use support::{PATIENCE, eventually, status};

/// Version 1 (HAProxy, The PROXY protocol, 2.1).
const V1: &[u8] = b"PROXY TCP4 203.0.113.9 127.0.0.1 40000 80\r\n";
/// Version 2 (2.2), for the same addresses.
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x09\x7f\0\0\x01\x9c\x40\0\x50";

/// An edge whose access log has the client's address and the path.
fn start(origin: &Origin, mode: &str, from: &str, hops: &str) -> Edge {
    Variables::new(&origin.url(), APPROVING)
        .set("SLUICE_PROXY_PROTOCOL", mode)
        .set("SLUICE_PROXY_PROTOCOL_FROM", from)
        .set("SLUICE_TRUSTED_HOPS", hops)
        .set(
            "SLUICE_ACCESS_LOG_FORMAT",
            "client=%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT% %REQ(:PATH)%",
        )
        .start()
}

/// The response to a GET that follows `head` on a connection from 127.0.0.1; empty if the edge closes it.
fn get_after(edge: &Edge, head: &[u8], path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, edge.port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n{headers}\r\n");
    let mut response = Vec::new();
    // A connection that the edge closes may be reset while it is used.
    let _ = stream.write_all(&[head, request.as_bytes()].concat());
    let _ = stream.read_to_end(&mut response);
    String::from_utf8_lossy(&response).into_owned()
}

fn assert_logs(edge: &Edge, line: &str) {
    eventually(line, || edge.log().lines().any(|logged| logged == line));
}

#[test]
fn a_listed_balancer_names_the_client_in_either_version_and_must_do_so() {
    let origin = Origin::start();
    let edge = start(&origin, "on", "127.0.0.1, 2001:db8::/32", "0");
    for (path, head) in [("/v1", V1), ("/v2", V2)] {
        let told = get_after(&edge, head, path, "x-forwarded-for: 192.0.2.1\r\n");
        assert_eq!(status(&told), 200, "{path}: {told}");
        assert_logs(&edge, &format!("client=203.0.113.9 {path}"));
    }
    assert_eq!(get_after(&edge, b"", "/none", ""), "");
}

#[test]
fn a_client_that_is_not_listed_is_closed_whatever_it_says_of_itself() {
    let origin = Origin::start();
    let listed = b"PROXY TCP4 10.0.0.1 127.0.0.1 40000 80\r\n";
    for mode in ["on", "optional"] {
        let edge = start(&origin, mode, "10.0.0.0/8,2001:db8::/32", "0");
        for head in [b"".as_slice(), V1, V2, listed] {
            assert_eq!(get_after(&edge, head, "/a", ""), "", "{mode}");
        }
    }
    assert!(
        origin
            .requests()
            .iter()
            .all(|request| !request.starts_with("GET /a "))
    );
}

#[test]
fn a_connection_without_a_header_is_of_its_own_address_where_the_header_is_optional() {
    let origin = Origin::start();
    let edge = start(&origin, "optional", "127.0.0.0/8", "0");
    assert_eq!(status(&get_after(&edge, b"", "/check", "")), 200);
    assert_logs(&edge, "client=127.0.0.1 /check");
    assert_eq!(status(&get_after(&edge, V2, "/named", "")), 200);
    assert_logs(&edge, "client=203.0.113.9 /named");
}

#[test]
fn a_trusted_proxy_in_front_of_the_balancer_knows_the_client_better() {
    let origin = Origin::start();
    let edge = start(&origin, "on", "127.0.0.1", "1");
    let forwarded = "x-forwarded-for: 192.0.2.1, 192.0.2.2\r\n";
    assert_eq!(status(&get_after(&edge, V1, "/a", forwarded)), 200);
    assert_logs(&edge, "client=192.0.2.2 /a");
}
