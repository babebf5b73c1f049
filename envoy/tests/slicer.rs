// SPDX-License-Identifier: Apache-2.0
//! The native slicer in Envoy, between the rendered listener for slices and a server that answers in EDGE's place.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sluice::settings::Settings;
use support::{
    PATIENCE, envoy, eventually, exchange_on, free_port, native_module, read_head, trap_module,
};

/// Size of a slice.
const SLICE: usize = 256 << 10;
/// Size of the object: 40 slices and a part of one.
const LENGTH: usize = 40 * SLICE + 1_000;

fn object() -> Vec<u8> {
    (0..LENGTH).map(|at| (at * 31 + at / 256) as u8).collect()
}

/// A server that answers the slicer's requests in EDGE's place. The path says how.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let object = Arc::new(object());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, object) = (Arc::clone(&log), Arc::clone(&object));
                std::thread::spawn(move || serve(stream, &log, &object));
            }
        });
        Self { port, asked }
    }

    /// Values of `x-sluice-slice` in the requests for this path so far.
    fn asked(&self, path: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let of_path = asked
            .iter()
            .filter_map(|line| line.strip_prefix(path)?.strip_prefix(' '));
        of_path.map(str::to_owned).collect()
    }
}

fn serve(mut stream: TcpStream, log: &Mutex<Vec<String>>, object: &[u8]) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let Some(head) = read_head(&mut reader) else {
            return;
        };
        let path = head.split(' ').nth(1).unwrap_or_default();
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let asked = field("x-sluice-slice: ").unwrap_or_default();
        assert_eq!(field("x-sluice-link: "), Some("the link"), "{head}");
        log.lock().unwrap().push(format!("{path} {asked}"));
        if path == "/hangs" {
            let _ = reader.read_line(&mut String::new());
            log.lock().unwrap().push(format!("{path} ended"));
            return;
        }
        let (status, state, body) = answer(path, asked, object);
        let answer = format!(
            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\ncache-status: first;hit\r\netag: \"{asked}\"\r\n\
             x-sluice-slice-state: {state}\r\n\r\n",
            body.len()
        );
        let breaks = path == "/breaks" && asked == "3";
        let body = if breaks { &body[..9] } else { body };
        if stream
            .write_all(answer.as_bytes())
            .and(stream.write_all(body))
            .is_err()
            || breaks
        {
            return;
        }
    }
}

/// Status, state and body of the answer to a request for a slice.
fn answer<'a>(path: &str, asked: &str, object: &'a [u8]) -> (u16, &'static str, &'a [u8]) {
    let Ok(number) = asked.parse::<usize>() else {
        return (200, "hit", b"the new object");
    };
    let slice = &object[number * SLICE..LENGTH.min((number + 1) * SLICE)];
    match path {
        "/changed" => (502, "changed", b"changed"),
        "/changes" if number == 3 => (502, "changed", b"changed"),
        "/busy" => (503, "", b"busy"),
        "/led" => (200, "led", slice),
        _ => (200, "hit", slice),
    }
}

/// An Envoy with the rendered configuration, without the roles, in front of a [`Server`].
struct Edge {
    port: u16,
    process: Child,
    _folder: tempfile::TempDir,
}

impl Edge {
    fn start(server: &Server, module: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let file = folder.path().join("envoy.json");
        std::fs::write(&file, configuration(server, module, port, folder.path())).unwrap();
        let mut process = Command::new(envoy());
        process.args([
            "--disable-hot-restart",
            "--log-level",
            "error",
            "--concurrency",
            "1",
            "-c",
        ]);
        let process = process.arg(file).spawn().unwrap();
        let admin = folder.path().join(format!("admin-{port}.sock"));
        eventually("ready", || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() && has_carrier(&admin)
        });
        Self {
            port,
            process,
            _folder: folder,
        }
    }

    /// Begins a request with this plan.
    fn begin(&self, path: &str, plan: &str, more: &str) -> TcpStream {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: edge.test\r\nconnection: close\r\n\
             x-sluice-slices: {plan}\r\nx-sluice-link: the link\r\n{more}\r\n"
        )
        .unwrap();
        stream
    }

    /// Sends a request with this plan. Returns the head and the body of the response.
    fn get(&self, path: &str, plan: &str) -> (String, Vec<u8>) {
        read(self.begin(path, plan, ""))
    }
}

/// Whether the worker has a carrier for requests for slices.
fn has_carrier(admin: &Path) -> bool {
    let target = "GET /stats?filter=slice_carriers";
    let answer = UnixStream::connect(admin).map(|admin| exchange_on(admin, target, ""));
    answer.is_ok_and(|answer| answer.contains("downstream_rq_active: 1"))
}

impl Drop for Edge {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads a response to its end, or to its cut.
fn read(mut stream: TcpStream) -> (String, Vec<u8>) {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    let end = all.windows(4).position(|four| four == b"\r\n\r\n");
    let body = all.split_off(end.map_or(all.len(), |end| end + 4));
    (String::from_utf8_lossy(&all).to_lowercase(), body)
}

/// The rendered configuration. The listener for clients has only the router and keeps the internal headers of a
/// request, and the requests for slices reach the server.
fn configuration(server: &Server, module: &Path, port: u16, folder: &Path) -> String {
    let (state, port) = (folder.to_str().unwrap(), port.to_string());
    let variables = [
        ("SLUICE_ORIGIN", "http://127.0.0.1:1"),
        ("SLUICE_EDGE_PORT", &port),
        ("SLUICE_NATIVE", module.to_str().unwrap()),
        ("SLUICE_STATE", state),
    ];
    let lookup = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.into())
    };
    let settings = Settings::from_lookup(&lookup).unwrap();
    let origin = settings.origin.as_ref().unwrap();
    let text = sluice::render::render(&settings, origin, &folder.join("cache")).unwrap();
    let mut config: Value = serde_saphyr::from_str(&text).unwrap();
    let resources = &mut config["static_resources"];
    let listeners = resources["listeners"].as_array_mut().unwrap();
    listeners.retain(|it| {
        ["edge", "sluice_slices", "sluice_slice_carriers"]
            .iter()
            .any(|name| it["name"] == *name)
    });
    let manager = &mut listeners[0]["filter_chains"][0]["filters"][0]["typed_config"];
    manager["early_header_mutation_extensions"] = json!([]);
    let filters = manager["http_filters"].as_array_mut().unwrap();
    filters.retain(|filter| filter["name"] == "router");
    let address = json!({"socket_address": {"address": "127.0.0.1", "port_value": server.port}});
    for cluster in resources["clusters"].as_array_mut().unwrap() {
        if cluster["name"] == "sluice_slice" {
            cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"] =
                address.clone();
        }
    }
    let is_kept = |cluster: &Value| {
        let name = cluster["name"].as_str().unwrap_or_default();
        ["origin", "sluice_slices", "sluice_slice"].contains(&name)
    };
    let clusters = resources["clusters"].as_array_mut().unwrap();
    clusters.retain(is_kept);
    for cluster in clusters
        .iter_mut()
        .filter(|cluster| cluster["name"] == "origin")
    {
        *cluster = json!({"name": "origin", "connect_timeout": "1s"});
    }
    config.to_string()
}

fn plan(bytes: &str) -> String {
    format!("{bytes} {LENGTH} {SLICE} 2")
}

#[test]
fn the_response_has_exactly_the_bytes_of_its_plan() {
    let server = Server::start();
    let edge = Edge::start(&server, &native_module());
    let object = object();
    for path in ["/hit", "/led"] {
        let (head, body) = edge.get(path, &plan("whole"));
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert!(head.contains("cache-status: first;hit\r\n"), "{head}");
        assert!(!head.contains("etag"), "a header of a slice: {head}");
        assert!(body == object, "{path}: {} bytes", body.len());
        let mut asked = server.asked(path);
        asked.sort_by_key(|number| number.parse::<usize>().unwrap());
        let all: Vec<_> = (0..=40).map(|number| number.to_string()).collect();
        assert_eq!(asked, all);
    }
    let (first, last) = (3 * SLICE - 7, 7 * SLICE + 9);
    let (head, body) = edge.get("/range", &plan(&format!("{first}-{last}")));
    assert!(head.starts_with("http/1.1 206"), "{head}");
    assert!(
        head.contains(&format!("content-range: bytes {first}-{last}/{LENGTH}\r\n")),
        "{head}"
    );
    assert!(body == object[first..=last]);
    assert_eq!(server.asked("/range"), ["2", "3", "4", "5", "6", "7"]);

    let several = format!("0-9,{first}-{last} {LENGTH} {SLICE} 2 edge video/mp4");
    let (head, body) = edge.get("/several", &several);
    assert!(
        head.contains("content-type: multipart/byteranges; boundary=edge\r\n"),
        "{head}"
    );
    assert!(
        head.contains(&format!("content-length: {}\r\n", body.len())),
        "{head}"
    );
    assert!(body.ends_with(b"\r\n--edge--\r\n"));
    assert!(body.windows(10).any(|ten| *ten == object[..10]));
}

#[test]
fn a_client_that_does_not_read_holds_few_slices() {
    let server = Server::start();
    let edge = Edge::start(&server, &native_module());
    let mut slow = edge.begin("/led", &plan("whole"), "");
    let mut first = [0; 1];
    slow.read_exact(&mut first).unwrap();
    for _ in 0..3 {
        assert_eq!(edge.get("/hit", &plan("whole")).1.len(), LENGTH);
    }
    let asked = server.asked("/led").len();
    assert!(asked < 30, "{asked} slices of 256 KiB");
    assert!(read(slow).1.ends_with(&object()[LENGTH - 100..]));
    assert_eq!(server.asked("/led").len(), 41);
}

#[test]
fn a_slice_that_fails_first_is_answered_and_a_later_one_cuts() {
    let server = Server::start();
    let edge = Edge::start(&server, &native_module());
    let (head, body) = edge.get("/changed", &plan("whole"));
    assert!(
        head.starts_with("http/1.1 200") && head.contains("etag: \"again\""),
        "{head}"
    );
    assert_eq!(body, b"the new object");
    assert_eq!(server.asked("/changed"), ["0", "again"]);
    let (head, body) = edge.get("/busy", &plan("whole"));
    assert!(
        head.starts_with("http/1.1 503") && body == b"busy",
        "{head}"
    );
    let object = object();
    for (path, length) in [("/changes", 3 * SLICE), ("/breaks", 3 * SLICE + 9)] {
        let (head, body) = edge.get(path, &plan("whole"));
        assert!(
            head.contains(&format!("content-length: {LENGTH}\r\n")),
            "{head}"
        );
        assert!(body == object[..length], "{path}: {} bytes", body.len());
    }
    let (head, _) = edge.get("/hit", "nonsense");
    assert!(head.starts_with("http/1.1 503"), "{head}");
}

#[test]
fn a_panic_ends_only_its_own_response() {
    let server = Server::start();
    let edge = Edge::start(&server, &trap_module());
    let mut other = edge.begin("/hit", &plan("whole"), "");
    let mut first = [0; 1];
    other.read_exact(&mut first).unwrap();
    let (head, _) = read(edge.begin("/hit", &plan("whole"), "x-trap: slicer\r\n"));
    assert!(head.starts_with("http/1.1 503"), "{head}");
    assert!(read(other).1.ends_with(&object()[LENGTH - 100..]));
}

#[test]
fn at_most_64_slices_go_on_without_their_clients() {
    let server = Server::start();
    let edge = Edge::start(&server, &native_module());
    let asked = |what: &str| {
        let asked = server.asked("/hangs");
        asked.iter().filter(|it| *it == what).count()
    };
    for count in 1..=70 {
        let client = edge.begin("/hangs", &plan("whole"), "");
        eventually("a request for the slice", || asked("0") == count);
        drop(client);
    }
    eventually("the end of six requests", || asked("ended") == 6);
    let object = object();
    assert!(edge.get("/led", &plan("whole")).1 == object);
    assert_eq!(asked("ended"), 6);
}
