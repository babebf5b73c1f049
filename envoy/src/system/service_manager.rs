// SPDX-License-Identifier: Apache-2.0
//! Notifications to the service manager that has started this process, such as systemd: `sd_notify(3)`. Without the
//! variable `NOTIFY_SOCKET` nothing is sent.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::time::{ClockId, clock_gettime};

/// The variable that names the service manager's socket. Only the entry point may have the variable.
pub const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";

/// Reports that the edge serves, after a start or a reload. `status` is a line for the operator.
pub fn report_ready(status: &str) {
    report(&format!("READY=1\n{}", status_line(status)));
}

/// Reports that a reload has begun, which ends with [`report_ready`].
pub fn report_reloading() {
    let now = clock_gettime(ClockId::Monotonic);
    let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
    report(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}\n"));
}

/// Reports that the edge has begun to stop.
pub fn report_stopping(status: &str) {
    report(&format!("STOPPING=1\n{}", status_line(status)));
}

/// Reports the edge's state as a line for the operator.
pub fn report_status(status: &str) {
    report(&status_line(status));
}

fn status_line(status: &str) -> String {
    format!("STATUS={}\n", status.replace('\n', "; "))
}

fn report(message: &str) {
    if let Some(socket) = std::env::var_os(SOCKET_VARIABLE) {
        // The manager may have gone; the failure cannot be reported then.
        let _ = send(&socket, message);
    }
}

/// Sends a message to a socket at a path, or with an abstract name, which begins with `@`.
fn send(socket: &OsStr, message: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?
        .send_to_addr(message.as_bytes(), &address)
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::random;
    use tempfile::TempDir;

    fn received(manager: &UnixDatagram) -> String {
        let mut buffer = [0; 256];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_manager_at_a_path_and_one_with_an_abstract_name_get_the_message() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1\n").unwrap();
        assert_eq!(received(&manager), "READY=1\n");

        let name = format!("sluice-{}", random::hex().unwrap());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1\n").unwrap();
        assert_eq!(received(&manager), "STOPPING=1\n");
    }

    #[test]
    fn a_status_is_one_line() {
        assert_eq!(status_line("refused: a\nb"), "STATUS=refused: a; b\n");
    }
}
