// SPDX-License-Identifier: Apache-2.0
//! The entry point as a process: how it starts, refuses to start, drains and ends.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::fs::Permissions;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use support::edge::{Edge, Variables, runs};
use support::modules::{APPROVING, DEAD};
use support::origin::Origin;
use support::{envoy, eventually, exchange, exchange_on, free_port, get, status};

fn edge(origin: &Origin) -> Variables {
    Variables::new(&origin.url(), APPROVING)
}

/// Sends a request, and waits until the origin has it and keeps it until its release.
fn held_request(edge: &Edge, origin: &Origin) -> TcpStream {
    let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, edge.port)).unwrap();
    write!(client, "GET /held HTTP/1.1\r\nhost: edge.test\r\n\r\n").unwrap();
    eventually("the request at the origin", || {
        !origin.requests().is_empty()
    });
    client
}

/// Lets the origin answer that request, and fails unless the client receives the whole answer.
fn assert_answered(origin: &Origin, mut client: TcpStream) {
    origin.release();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("origin\n"), "{answer}");
}

fn wait_until_it_drains(edge: &Edge) {
    eventually("not ready any more", || {
        status(&get(edge.port, "/healthz")) == 503
    });
}

#[test]
fn requests_go_through_the_cache_to_the_origin() {
    for cache in ["disk", "memory"] {
        let origin = Origin::start();
        let edge = edge(&origin).set("SLUICE_CACHE", cache).start();
        assert!(get(edge.port, "/a").ends_with("origin\n"), "{cache}");
        eventually("a hit", || get(edge.port, "/a").contains("\r\nage: "));
        assert!(
            origin.requests().len() < 5,
            "{cache}: {:?}",
            origin.requests()
        );
    }
}

#[test]
fn a_port_in_use_is_named_before_anything_starts() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for name in ["SLUICE_EDGE_PORT", "SLUICE_METRICS_PORT"] {
        let (code, says) = edge(&Origin::start()).set(name, &port).refused();
        assert_eq!(code, Some(1));
        assert!(
            says.contains(&format!(
                " error sluice: {name}={port}: expected a port that is free"
            )),
            "{says}"
        );
    }
}

#[test]
fn the_admin_interface_is_a_socket_of_its_user_and_no_port() {
    let edge = edge(&Origin::start()).start();
    let says = |answer: &str| (status(answer), answer.contains("LIVE"));
    let call = |line| exchange_on(UnixStream::connect(&edge.admin).unwrap(), line, "");
    assert_eq!(says(&call("GET /ready")), (200, true));
    let metadata = edge.admin.metadata().unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    // A page of another site can make a browser send requests to any port; the edge listens on this one only.
    assert_eq!(listening_ports(edge.envoy()), [edge.port]);
    assert_eq!(says(&get(edge.port, "/ready")), (200, false));
}

/// The TCP ports on which a process listens.
fn listening_ports(pid: u32) -> Vec<u16> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let links = files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
    let sockets: Vec<_> = links.map(|link| link.display().to_string()).collect();
    let tables = ["tcp", "tcp6"].map(|table| format!("/proc/{pid}/net/{table}"));
    let text = tables.map(|table| std::fs::read_to_string(table).unwrap());
    let rows = text.iter().flat_map(|text| text.lines().skip(1));
    let port = |row: &str| {
        let cells: Vec<_> = row.split_whitespace().collect();
        let [_, local, _, "0A", _, _, _, _, _, inode, ..] = cells[..] else {
            return None;
        };
        let (_, port) = local.rsplit_once(':')?;
        let own = sockets.contains(&format!("socket:[{inode}]"));
        own.then(|| u16::from_str_radix(port, 16).ok())?
    };
    let mut ports: Vec<_> = rows.filter_map(port).collect();
    // Each worker has its own listening socket.
    ports.dedup();
    ports
}

#[test]
fn the_native_module_takes_no_other_envoy_than_its_own() {
    let origin = Origin::start();
    let folder = tempfile::TempDir::new().unwrap();
    let [envoy, module] = ["envoy", "sluice.so"].map(|name| folder.path().join(name));
    std::fs::write(&module, "").unwrap();
    for runtime in ["wasm", "native"] {
        let with = |says: &str| {
            std::fs::write(&envoy, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
            std::fs::set_permissions(&envoy, Permissions::from_mode(0o755)).unwrap();
            let edge = edge(&origin).set("SLUICE_RUNTIME", runtime);
            let edge = edge.set("SLUICE_NATIVE", module.to_str().unwrap());
            edge.set("SLUICE_ENVOY", envoy.to_str().unwrap()).refused()
        };
        let (code, says) = with("envoy  version: 0123abcd/1.2.3/Clean/RELEASE/BoringSSL");
        assert_eq!(code, Some(1), "{says}");
        assert!(
            says.contains("it is Envoy 1.2.3: expected Envoy 1."),
            "{says}"
        );
        let (_, says) = with("nginx/1.2.3");
        assert!(says.contains("no version in"), "{says}");
        let without = edge(&origin).set("SLUICE_RUNTIME", runtime);
        let (_, says) = without.set("SLUICE_NATIVE", "/no/such.so").refused();
        assert!(
            says.contains("SLUICE_NATIVE=/no/such.so: expected a file that exists"),
            "{says}"
        );
    }
    let (_, says) = edge(&origin).set("SLUICE_RUNTIME", "lua").refused();
    assert!(
        says.contains("SLUICE_RUNTIME=\"lua\": expected wasm or native"),
        "{says}"
    );
}

#[test]
fn what_is_missing_is_named() {
    let origin = Origin::start();
    let (_, says) = edge(&origin)
        .set("SLUICE_ENVOY", "/no/such/envoy")
        .refused();
    assert!(
        says.contains("SLUICE_ENVOY=/no/such/envoy: No such file"),
        "{says}"
    );
    let (_, says) = edge(&origin).set("SLUICE_WASM", "/no/such.wasm").refused();
    assert!(
        says.contains("SLUICE_WASM=/no/such.wasm: expected a file that exists"),
        "{says}"
    );
    let (_, says) = edge(&origin).set("SLUICE_ORIGIN", "").refused();
    assert!(
        says.contains("ORIGIN: must be set") && says.contains("SLUICE_MINIO"),
        "{says}"
    );
}

#[test]
fn an_unknown_argument_is_answered_with_the_usage() {
    let output = edge(&Origin::start())
        .command()
        .arg("serve")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(
        says.contains("'serve'") && says.contains("Usage: sluice"),
        "{says}"
    );
}

#[test]
fn the_module_is_copied_without_any_other_setting() {
    let folder = tempfile::tempdir().unwrap();
    let [module, copy] = ["sluice.wasm", "copy.wasm"].map(|name| folder.path().join(name));
    let sluice = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.env_clear().env("SLUICE_WASM", &module);
        command.arg("module").arg(&copy).output().unwrap()
    };
    let refused = sluice();
    let says = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{says}");
    assert!(says.contains("sluice.wasm cannot be copied to"), "{says}");
    assert!(!copy.exists());
    for text in ["the module", "another one"] {
        std::fs::write(&module, text).unwrap();
        assert!(sluice().status.success());
        assert_eq!(std::fs::read_to_string(&copy).unwrap(), text);
    }
}

#[test]
fn a_signal_ends_the_edge_and_its_envoy_in_good_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut edge = edge(&Origin::start()).start();
        let envoy = edge.envoy();
        edge.signal(signal);
        assert_eq!(edge.end(), 0);
        assert!(!runs(envoy));
    }
}

#[test]
fn a_hangup_reloads_an_edge_that_starts_or_serves_and_is_ignored_while_it_drains() {
    const RELOADED: &str = "sluice: reloaded: nothing has changed";
    let origin = Origin::start();
    let mut edge = edge(&origin).set("SLUICE_DRAIN_SECONDS", "3600").launch();
    eventually("an Envoy", || edge.has_envoy());
    let envoy = edge.envoy();
    edge.signal(Signal::HUP);
    edge.wait_until_ready();
    eventually("a reload", || edge.log().matches(RELOADED).count() == 1);
    edge.signal(Signal::HUP);
    eventually("a reload", || edge.log().matches(RELOADED).count() == 2);
    let client = held_request(&edge, &origin);
    edge.signal(Signal::TERM);
    wait_until_it_drains(&edge);
    edge.signal(Signal::HUP);
    eventually("the line", || {
        edge.log().contains("sluice: SIGHUP is ignored")
    });
    assert_answered(&origin, client);
    assert_eq!(edge.end(), 0);
    assert!(!runs(envoy));
}

#[test]
fn an_edge_whose_logs_are_opened_anew_while_it_drains_goes_on_draining() {
    let origin = Origin::start();
    let mut edge = edge(&origin).set("SLUICE_DRAIN_SECONDS", "3600").start();
    let client = held_request(&edge, &origin);
    edge.signal(Signal::TERM);
    wait_until_it_drains(&edge);
    edge.signal(Signal::USR1);
    edge.signal(Signal::HUP);
    eventually("both signals", || edge.log().contains("SIGHUP is ignored"));
    assert_answered(&origin, client);
    assert_eq!(edge.end(), 0);
}

#[test]
fn an_edge_that_is_killed_takes_its_envoy_along() {
    let mut edge = edge(&Origin::start()).start();
    let envoy = edge.envoy();
    edge.signal(Signal::KILL);
    assert_eq!(edge.end(), 128 + 9);
    eventually("the end of Envoy", || !runs(envoy));
}

#[test]
fn envoys_end_is_the_edges_and_its_exit_code_too() {
    let mut edge = edge(&Origin::start()).start();
    edge.signal_envoy(Signal::KILL);
    assert_eq!(edge.end(), 128 + 9);
    assert!(edge.log().contains("Envoy ended"), "{}", edge.log());
}

#[test]
fn with_restart_an_edge_whose_envoy_has_crashed_comes_back_each_time() {
    let mut edge = edge(&Origin::start()).restarting().start();
    for (crash, pause) in [(1, "0.1"), (2, "0.2"), (3, "0.4")] {
        let envoy = edge.envoy();
        edge.signal_envoy(Signal::KILL);
        eventually("the edge again", || {
            edge.log().matches("is ready").count() == crash + 1
        });
        assert!(edge.log().contains(&format!(
            "sluice: the edge has ended (exit status: 137); it is started again in {pause} s"
        )));
        assert!(get(edge.port, "/a").ends_with("origin\n"));
        assert!(!runs(envoy));
    }
    let envoy = edge.envoy();
    edge.signal(Signal::HUP);
    eventually("the line", || edge.log().contains("sluice: reloaded: "));
    edge.signal(Signal::TERM);
    assert_eq!(edge.end(), 0);
    assert!(!runs(envoy));
}

#[test]
fn with_restart_a_stop_ends_the_pause_before_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let crashing = folder.path().join("envoy");
    // This Envoy reports its version, and does nothing else.
    let real = envoy();
    let real = real.display();
    let script =
        format!("#!/bin/sh\n[ \"$1\" = --version ] && exec '{real}' --version\nkill -SEGV $$\n");
    std::fs::write(&crashing, script).unwrap();
    std::fs::set_permissions(&crashing, Permissions::from_mode(0o700)).unwrap();
    let edge = edge(&Origin::start()).restarting();
    let edge = edge.set("SLUICE_ENVOY", crashing.to_str().unwrap());
    let mut edge = edge.launch();
    eventually("a pause of some seconds", || {
        edge.log()
            .contains("(exit status: 139); it is started again in 3.2 s")
    });
    edge.signal(Signal::TERM);
    assert_eq!(edge.end(), 0);
    assert!(!edge.log().contains("in 6.4 s"), "{}", edge.log());
}

#[test]
fn with_restart_a_start_that_is_refused_is_not_repeated() {
    let edge = edge(&Origin::start()).restarting();
    let (code, says) = edge.set("SLUICE_WASM", "/no/such.wasm").refused();
    assert_eq!(code, Some(1));
    assert!(!says.contains("started again"), "{says}");
}

#[test]
fn with_restart_a_kill_leaves_no_envoy_behind() {
    let mut edge = edge(&Origin::start()).restarting().start();
    let envoy = edge.envoy();
    edge.signal(Signal::KILL);
    assert_eq!(edge.end(), 128 + 9);
    eventually("the end of Envoy", || !runs(envoy));
}

#[test]
fn a_filter_that_does_not_load_ends_the_edge_with_a_reason() {
    let variables = edge(&Origin::start());
    std::fs::write(variables.folder().join("filter.wasm"), "no module").unwrap();
    let (code, says) = variables.refused();
    assert_eq!(code, Some(1));
    assert!(says.contains("Envoy ended before it was ready"), "{says}");
}

#[test]
fn draining_lets_requests_under_way_end() {
    let origin = Origin::start();
    let mut edge = edge(&origin).set("SLUICE_DRAIN_SECONDS", "3600").start();
    let client = held_request(&edge, &origin);
    edge.signal(Signal::TERM);
    wait_until_it_drains(&edge);
    assert_answered(&origin, client);
    assert_eq!(edge.end(), 0);
}

#[test]
fn an_edge_serves_for_its_least_drain_time_though_no_request_is_under_way() {
    let origin = Origin::start();
    let mut edge = edge(&origin).set("SLUICE_MIN_DRAIN_SECONDS", "2").start();
    let told = Instant::now();
    edge.signal(Signal::TERM);
    wait_until_it_drains(&edge);
    while told.elapsed() < Duration::from_millis(1_500) {
        assert_eq!(status(&get(edge.port, "/healthz")), 503);
        let answer = get(edge.port, "/a");
        assert!(answer.ends_with("origin\n"), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
    assert_eq!(edge.end(), 0);
    let took = told.elapsed();
    assert!((2..8).contains(&took.as_secs()), "{took:?}");
}

#[test]
fn control_an_edge_without_requests_ends_at_once() {
    let mut edge = edge(&Origin::start())
        .set("SLUICE_DRAIN_SECONDS", "3600")
        .start();
    edge.signal(Signal::TERM);
    assert_eq!(edge.end(), 0);
}

#[test]
fn draining_ends_after_its_time_and_at_a_second_signal() {
    for (seconds, signals) in [("1", 1), ("3600", 2)] {
        let origin = Origin::start();
        let mut edge = edge(&origin).set("SLUICE_DRAIN_SECONDS", seconds).start();
        let _client = held_request(&edge, &origin);
        edge.signal(Signal::TERM);
        if signals == 2 {
            wait_until_it_drains(&edge);
            edge.signal(Signal::TERM);
        }
        assert_eq!(edge.end(), 0);
    }
}

#[test]
fn clients_that_hold_all_connections_leave_the_other_listeners_theirs_and_are_closed() {
    let [purge, metrics] = [free_port(), free_port()];
    let edge = edge(&Origin::start())
        .set("SLUICE_PURGE_TOKEN", "sixteen-characters")
        .set("SLUICE_PURGE_PORT", &purge.to_string())
        .set("SLUICE_METRICS_PORT", &metrics.to_string())
        .open_files(400)
        .start();
    // More connections than 400 open files allow.
    let connect = |port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let mut idle: Vec<_> = (0..200).map(|_| connect(edge.port)).collect();
    eventually("a refused connection", || idle.iter_mut().any(is_closed));
    let start = Instant::now();
    assert_eq!(status(&get(metrics, "/healthz")), 200);
    assert!(
        edge.command()
            .arg("healthcheck")
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(status(&get(metrics, "/stats/prometheus")), 200);
    assert_eq!(status(&get(purge, "/purge")), 404);
    assert_eq!(
        status(&exchange_on(
            UnixStream::connect(&edge.admin).unwrap(),
            "GET /ready",
            ""
        )),
        200
    );
    // Control: the edge was full, so another client could not connect.
    assert!(idle.iter_mut().any(|stream| !is_closed(stream)));
    eventually("all closed", || idle.iter_mut().all(is_closed));
    assert!(start.elapsed() > Duration::from_secs(5));
    assert!(get(edge.port, "/a").ends_with("origin\n"));
}

/// Whether a connection has ended. Reads the bytes that arrive in front of the end.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    loop {
        match stream.read(&mut [0; 4096]) {
            Ok(1..) => {}
            Ok(0) => return true,
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

/// A connection of a client that sends these bytes, gets an answer, and is idle then.
fn idle_after(port: u16, sends: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.write_all(sends).unwrap();
    assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
    stream
}

#[test]
fn clients_that_stay_idle_leave_room_for_others_within_seconds() {
    const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: edge.test\r\n\r\n";
    // The preface ends with an empty SETTINGS frame.
    const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let origin = Origin::start();
    let quiet = edge(&origin).start();
    let mut alone = [REQUEST, HTTP2].map(|sends| idle_after(quiet.port, sends));
    // 400 open files allow 150 connections.
    let full = edge(&origin).open_files(400).start();
    let start = Instant::now();
    let sends = [REQUEST, HTTP2].into_iter().cycle().take(150);
    let mut idle: Vec<_> = sends.map(|sends| idle_after(full.port, sends)).collect();
    let mut refused = TcpStream::connect((Ipv4Addr::LOCALHOST, full.port)).unwrap();
    eventually("a refused connection", || is_closed(&mut refused));
    // Idle connections are closed only until other clients find room.
    eventually("room", || {
        idle.retain_mut(|stream| !is_closed(stream));
        idle.len() <= 100
    });
    let took = start.elapsed();
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert!(get(full.port, "/a").ends_with("origin\n"));
    // An edge with room keeps idle connections.
    assert!(!alone.iter_mut().any(is_closed));
}

#[test]
fn requests_of_an_address_are_bounded_on_the_listener_for_clients_only() {
    let [purge, metrics] = [free_port(), free_port()];
    let edge = edge(&Origin::start())
        .set("SLUICE_RATE_LIMIT_PER_ADDRESS", "1")
        .set("SLUICE_PURGE_TOKEN", "sixteen-characters")
        .set("SLUICE_PURGE_PORT", &purge.to_string())
        .set("SLUICE_METRICS_PORT", &metrics.to_string())
        .start();
    let mut refused = String::new();
    // The client's own X-Forwarded-For has no effect.
    let mut number = 0;
    eventually("429", || {
        number += 1;
        let forwarded = format!("x-forwarded-for: 192.0.2.{number}\r\n");
        refused = exchange(edge.port, "GET /a", &forwarded);
        status(&refused) == 429
    });
    assert!(refused.contains("\r\nretry-after: 1\r\n"), "{refused}");
    for _ in 0..5 {
        assert_eq!(status(&get(edge.port, "/healthz")), 200);
        assert_eq!(status(&get(metrics, "/healthz")), 200);
        assert_eq!(status(&get(purge, "/purge")), 404);
    }
    let counted = get(metrics, "/stats/prometheus");
    let name =
        "envoy_http_local_rate_limit_rate_limited{envoy_local_http_ratelimit_prefix=\"edge\"} ";
    assert!(counted.contains(name), "{counted}");
    eventually("another second", || status(&get(edge.port, "/a")) == 200);
}

#[test]
fn the_address_of_a_client_is_what_the_trusted_proxies_say() {
    let edge = edge(&Origin::start())
        .set("SLUICE_RATE_LIMIT_PER_ADDRESS", "1")
        .set("SLUICE_TRUSTED_HOPS", "1")
        .start();
    let send = |forwarded: &str| {
        let header = format!("x-forwarded-for: {forwarded}\r\n");
        status(&exchange(edge.port, "GET /a", &header))
    };
    for number in 0..20 {
        assert_eq!(send(&format!("192.0.2.{number}")), 200);
        assert_eq!(send(&format!("2001:db8:0:{number}::1")), 200);
    }
    // The client's part of the header is in front of the proxy's.
    for number in 0.. {
        if send(&format!("192.0.2.{}, 198.51.100.1", number % 250)) == 429 {
            break;
        }
        assert!(number < 10_000);
    }
    // All addresses of one IPv6 network count as one client.
    for number in 0.. {
        if send(&format!("2001:db8:1:2::{number:x}")) == 429 {
            break;
        }
        assert!(number < 10_000);
    }
}

#[test]
fn a_cache_folder_belongs_to_one_edge() {
    let origin = Origin::start();
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().to_str().unwrap();
    let first = edge(&origin).set("SLUICE_CACHE_DIR", cache).start();
    let (code, says) = edge(&origin).set("SLUICE_CACHE_DIR", cache).refused();
    assert_eq!(code, Some(1));
    assert!(
        says.contains(&format!(
            "SLUICE_CACHE_DIR={cache}: another edge is using this folder"
        )),
        "{says}"
    );
    drop(first);
    edge(&origin).set("SLUICE_CACHE_DIR", cache).start();
}

#[test]
fn a_cache_in_memory_leaves_nothing_behind() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let origin = Origin::start();
    let mut edge = edge(&origin)
        .set("SLUICE_CACHE", "memory")
        .set("SLUICE_CACHE_DIR", dir.path().to_str().unwrap())
        .start();
    assert_eq!(dir.path().read_dir().unwrap().count(), 1);
    edge.signal(Signal::TERM);
    edge.end();
    assert_eq!(dir.path().read_dir().unwrap().count(), 0);
}

#[test]
fn the_configuration_is_for_its_user_only() {
    let edge = edge(&Origin::start()).start();
    let state = edge.folder().join("state");
    let files = state.join(format!("envoy-{}", edge.port));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    for folder in [&state, &files] {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    let mut count = 0;
    for file in files.read_dir().unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        count += 1;
    }
    assert!(count > 3, "{count}");
}

#[test]
fn healthcheck_says_by_its_exit_code_whether_the_edge_is_ready() {
    let variables =
        Variables::new(&Origin::start().url(), DEAD).set("SLUICE_HEALTH_PATH", "/ready");
    assert_eq!(
        variables
            .command()
            .arg("healthcheck")
            .status()
            .unwrap()
            .code(),
        Some(1)
    );
    let edge = variables.start();
    assert_eq!(
        edge.command().arg("healthcheck").status().unwrap().code(),
        Some(0)
    );
    // A URL needs no settings.
    for (path, code) in [("/ready", 0), ("/other", 1)] {
        let url = format!("http://127.0.0.1:{}{path}", edge.port);
        let mut command = edge.command();
        command.env_clear().args(["healthcheck", &url]);
        assert_eq!(command.status().unwrap().code(), Some(code), "{url}");
    }
    assert_eq!(status(&get(edge.port, "/ready")), 200);
    assert!(
        !edge.log().contains("/ready"),
        "health checks are not logged"
    );
}

#[test]
fn one_line_per_request_goes_to_standard_output() {
    let edge = edge(&Origin::start()).start();
    get(edge.port, "/some/path?q=1");
    eventually("the line", || {
        edge.log()
            .contains(" 127.0.0.1 edge.test - HTTP/1.1 GET /some/path?q=1 200 7B ")
    });
}

#[test]
fn the_lines_of_the_edge_and_of_envoy_have_one_form() {
    let refused = |format| {
        let variables = edge(&Origin::start()).set("SLUICE_LOG_FORMAT", format);
        std::fs::write(variables.folder().join("filter.wasm"), "no module").unwrap();
        variables.refused().1
    };
    let log = refused("json");
    let objects = log.lines().filter(|line| line.starts_with('{'));
    let objects = objects.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let objects: Vec<_> = objects.collect();
    let log = refused("text");
    for component in ["sluice", "wasm"] {
        let of = |object: &&Value| object["component"] == component;
        let object = objects.iter().find(of).unwrap();
        for field in ["time", "level", "message"] {
            assert!(object[field].is_string(), "{object}");
        }
        let is_time = |text: &str| text.parse::<jiff::Timestamp>().is_ok();
        let part = format!("{component}:");
        let mut lines = log.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let has_form = |line: Vec<&str>| match line[..] {
            [time, "error" | "critical" | "warning", name, _, ..] => is_time(time) && name == part,
            _ => false,
        };
        assert!(lines.any(has_form), "{component}: {log}");
    }
}

#[test]
fn a_client_forges_no_field_of_a_line_in_the_combined_format() {
    let edge = edge(&Origin::start())
        .set("SLUICE_ACCESS_LOG", "combined")
        .start();
    let headers = "user-agent: x\" \\ \"y\r\nreferer: http://other/\"\r\n";
    let _ = exchange(edge.port, "GET /a?\"q", headers);
    eventually("the line", || edge.log().contains("GET /a"));
    let log = edge.log();
    let line = log.lines().find(|line| line.contains("GET /a")).unwrap();
    let parts: Vec<_> = line.split('"').collect();
    let [client, request, status, referer, _, agent, _, _, seconds] = parts[..] else {
        panic!("{line}");
    };
    assert!(client.starts_with("127.0.0.1 - - ["), "{line}");
    assert!(client.ends_with(" +0000] "), "{line}");
    assert_eq!(request, r"GET /a?\x22q HTTP/1.1");
    assert_eq!(status, " 200 7 ");
    assert_eq!(referer, r"http://other/\x22");
    assert_eq!(agent, r"x\x22 \x5C \x22y");
    assert!(seconds.trim().parse::<f64>().unwrap() > 0.0, "{line}");
}

#[test]
fn an_own_format_of_the_access_log_is_checked_before_anything_starts() {
    let own = |format| edge(&Origin::start()).set("SLUICE_ACCESS_LOG_FORMAT", format);
    let (code, log) = own("%REQ(:PATH)% %STATUS%").refused();
    assert_eq!(code, Some(1), "{log}");
    let told = "ACCESS_LOG_FORMAT=\"%REQ(:PATH)% %STATUS%\": expected Envoy's command operators: ";
    assert!(log.contains(told), "{log}");
    assert!(log.contains("STATUS\n"), "{log}");
    let edge = own("own %REQ(:PATH)% 100%%").start();
    get(edge.port, "/a");
    eventually("the line", || edge.log().contains("own /a 100%\n"));
}
