// SPDX-License-Identifier: Apache-2.0
//! Common parts of the tests of the entry point: edges, an origin, and stand-ins for the filter.
// In test code a failed expectation is a failed test, and no test uses all of this.
#![allow(clippy::unwrap_used, clippy::panic, dead_code)]

pub mod edge;
pub mod modules;
pub mod origin;

use std::io::{BufRead, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Bound on a wait. It is longer than a machine may stall while it writes much to a slow disk.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Head of the next request on a connection; `None` if the connection has ended.
pub fn read_head(reader: &mut impl BufRead) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return None;
        }
    }
    Some(head)
}

/// The Envoy binary: `SLUICE_ENVOY`, or else the one that the Makefile has installed.
pub fn envoy() -> PathBuf {
    part("SLUICE_ENVOY", "bin/envoy")
}

/// The native module. A part of it runs in front of the stand-ins for the filter.
pub fn native_module() -> PathBuf {
    part("SLUICE_NATIVE", "native/sluice.so")
}

/// The native module that panics on demand (`x-trap`).
pub fn trap_module() -> PathBuf {
    part("SLUICE_TRAP_NATIVE", "native/sluice-trap.so")
}

/// The file in `variable`, or else the one that `make test` has built.
fn part(variable: &str, made: &str) -> PathBuf {
    let made = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../.sluice")
        .join(made);
    let part = std::env::var_os(variable).map_or(made, PathBuf::from);
    assert!(
        part.is_file(),
        "nothing at {}: run `make test`, or set {variable}",
        part.display()
    );
    part
}

/// A free port, below the kernel's ephemeral range and below the ports of the end-to-end tests, so that no client's
/// connection can take the port until the edge listens on it.
pub fn free_port() -> u16 {
    const PORTS: std::ops::Range<u16> = 10_240..12_240;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Other test processes start at another place in the range.
    let offset = (std::process::id() as usize).wrapping_mul(7_919);
    let mut ports = std::iter::from_fn(|| {
        let at = offset.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS.len();
        PORTS.clone().nth(at)
    });
    ports
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .unwrap()
}

/// Polls until a condition holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(
            start.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a request on a new connection. Returns the response, or as much of it as has arrived.
pub fn exchange(port: u16, request_line: &str, headers: &str) -> String {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    exchange_on(stream, request_line, headers)
}

/// Sends a request on this connection, and returns the whole answer.
pub fn exchange_on(mut stream: impl Read + Write, request_line: &str, headers: &str) -> String {
    write!(
        stream,
        "{request_line} HTTP/1.1\r\nhost: edge.test\r\nconnection: close\r\n{headers}\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    // A reset also ends a response.
    while !is_whole(request_line, &answer)
        && let Ok(count @ 1..) = stream.read(&mut buffer)
    {
        answer.extend(buffer.iter().take(count));
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Whether a response with a content-length is complete. (After Envoy has refused a request, it keeps the
/// connection open for a second, so that the client can read the reason.)
fn is_whole(request_line: &str, answer: &[u8]) -> bool {
    let answer = String::from_utf8_lossy(answer);
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    request_line.starts_with("HEAD")
        || length.is_some_and(|length| length.parse() == Ok(body.len()))
}

/// Sends a GET on a new connection.
pub fn get(port: u16, path: &str) -> String {
    exchange(port, &format!("GET {path}"), "")
}

/// The status of a response.
pub fn status(answer: &str) -> u16 {
    answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or(0)
}
