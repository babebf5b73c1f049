// SPDX-License-Identifier: Apache-2.0
//! Loopback ports for servers that cannot be told to bind port 0.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the kernel's ephemeral range, so that the connections of a thousand clients never take one of these, and above
/// the ports of the entry point's own tests.
const FIRST: u16 = 12_240;
/// How many ports one test process has.
const BLOCK: u16 = 500;
const BLOCKS: u16 = 40;

/// A block of ports, reserved for as long as this process lives.
struct Block {
    first: u16,
    next: AtomicU16,
    _lock: File,
}

static PORTS: LazyLock<Block> = LazyLock::new(Block::take);

impl Block {
    /// Takes a block that no other process has. Two Envoys of different processes may listen on one port, and each
    /// would get some of the requests for it. An origin that is down for a while needs its port again. So two
    /// processes must not search for ports in the same block.
    fn take() -> Self {
        let folder = std::env::temp_dir().join("sluice-ports");
        fs::create_dir_all(&folder).expect("a folder for locks");
        let locked = (0..BLOCKS).find_map(|number| {
            let lock = File::create(folder.join(number.to_string())).expect("a file to lock");
            lock.try_lock().is_ok().then_some((number, lock))
        });
        let (number, lock) = locked.expect("fewer test processes at one time");
        Self {
            first: FIRST + BLOCK * number,
            next: AtomicU16::new(0),
            _lock: lock,
        }
    }
}

/// A port without a listener, which no other process with this harness will use.
///
/// # Panics
/// When no port is free.
#[must_use]
pub fn free_port() -> u16 {
    (0..BLOCK)
        .map(|_| PORTS.first + PORTS.next.fetch_add(1, Ordering::Relaxed) % BLOCK)
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .expect("a free loopback port")
}

/// A loopback address.
#[must_use]
pub const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}
