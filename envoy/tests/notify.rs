// SPDX-License-Identifier: Apache-2.0
//! The notifications of the edge to its service manager, received as systemd receives them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::os::unix::net::UnixDatagram;
use std::path::Path;

use rustix::process::Signal;
use support::PATIENCE;
use support::edge::Variables;
use support::modules::APPROVING;
use support::origin::Origin;
use tempfile::TempDir;

/// A service manager, which receives the notifications of one edge.
struct Manager {
    folder: TempDir,
    socket: UnixDatagram,
}

impl Manager {
    fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { folder, socket }
    }

    /// The variables of an edge of this manager.
    fn variables(&self, origin: &Origin) -> Variables {
        let socket = self.folder.path().join("notify");
        Variables::new(&origin.url(), APPROVING).set("NOTIFY_SOCKET", socket.to_str().unwrap())
    }

    /// The fields of the next notification.
    fn receive(&self) -> Vec<String> {
        let mut buffer = [0; 4096];
        let length = self.socket.recv(&mut buffer).unwrap();
        let text = String::from_utf8_lossy(buffer.get(..length).unwrap());
        text.lines().map(str::to_owned).collect()
    }

    /// The status in the next notification, which must say that the edge is ready.
    fn receive_ready(&self) -> String {
        match &self.receive()[..] {
            [ready, status] if ready == "READY=1" => status.strip_prefix("STATUS=").unwrap().into(),
            other => panic!("{other:?}"),
        }
    }

    /// The time in the next notification, which must say that a reload has begun, in microseconds.
    fn receive_reloading(&self) -> u64 {
        match &self.receive()[..] {
            [reloading, time] if reloading == "RELOADING=1" => {
                let time = time.strip_prefix("MONOTONIC_USEC=").unwrap();
                time.parse().unwrap()
            }
            other => panic!("{other:?}"),
        }
    }
}

fn replace(file: &Path, text: &str) {
    let new = file.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, file).unwrap();
}

#[test]
fn a_start_each_reload_a_refused_one_and_a_stop_are_reported() {
    let (origin, manager) = (Origin::start(), Manager::start());
    let policy = manager.folder.path().join("policy.yaml");
    replace(&policy, "cache: {}\n");
    let variables = manager.variables(&origin);
    let mut edge = variables
        .set("SLUICE_POLICY", policy.to_str().unwrap())
        .start();
    let status = manager.receive_ready();
    assert!(status.contains("is ready, in front of http://"), "{status}");

    edge.signal(Signal::HUP);
    let first = manager.receive_reloading();
    assert_eq!(manager.receive_ready(), "reloaded: nothing has changed");

    replace(&policy, "cache: {tll: 1}\n");
    edge.signal(Signal::HUP);
    assert!(manager.receive_reloading() > first);
    let status = manager.receive_ready();
    let refused = "reload refused, nothing has changed: ";
    assert!(status.starts_with(refused), "{status}");
    assert!(status.contains("cache.tll: unknown field"), "{status}");

    edge.signal(Signal::TERM);
    let stopping = manager.receive();
    assert_eq!(stopping.first().unwrap(), "STOPPING=1", "{stopping:?}");
    assert_eq!(edge.end(), 0);
}

#[test]
fn with_restart_the_status_names_the_fault_until_the_edge_is_ready_again() {
    let (origin, manager) = (Origin::start(), Manager::start());
    let edge = manager.variables(&origin).restarting().start();
    let _ = manager.receive_ready();
    edge.signal_envoy(Signal::KILL);
    let status = manager.receive().concat();
    assert!(status.starts_with("STATUS=the edge has ended"), "{status}");
    assert!(manager.receive_ready().contains("is ready"));
}

#[test]
fn envoy_cannot_write_to_the_service_manager() {
    let (origin, manager) = (Origin::start(), Manager::start());
    let edge = manager.variables(&origin).start();
    let environment = std::fs::read(format!("/proc/{}/environ", edge.envoy())).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    assert!(environment.contains("SLUICE_CACHE_SECRET="));
    assert!(!environment.contains("NOTIFY_SOCKET"), "{environment}");
}
