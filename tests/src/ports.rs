// SPDX-License-Identifier: Apache-2.0
//! Loopback ports for servers that cannot be told to bind port 0.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the kernel's ephemeral range: the connections of a thousand clients never take one of these.
const FIRST: u16 = 10_240;
const COUNT: u16 = 22_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port that nobody listens on now. Another process can still take it first: retry then.
///
/// # Panics
/// When no port is free.
#[must_use]
pub fn free_port() -> u16 {
    // Test processes beside this one start elsewhere in the range.
    let offset = u16::try_from(std::process::id().wrapping_mul(7919) % u32::from(COUNT)).unwrap();
    (0..COUNT)
        .map(|_| FIRST + (offset + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT)
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .expect("a free loopback port")
}

/// A loopback address.
#[must_use]
pub const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}
