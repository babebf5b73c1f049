// SPDX-License-Identifier: Apache-2.0
//! Secrets in files reach Envoy, and no file or dump of the edge has them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::fs;
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use support::edge::{Edge, Variables};
use support::modules::{APPROVING, DEAD};
use support::origin::Origin;
use support::{PATIENCE, eventually, exchange_on, get, status};

/// A secret that no file or dump may show.
const SECRET: &str = "hush-hush-hush";

/// A collector of traces that speaks TLS: its port, its certificate in PEM, and the heads of its requests.
fn collector() -> (u16, String, Receiver<String>) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = certificate.self_signed(&key).unwrap();
    let der = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], der)
        .unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heads, received) = channel();
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            while let Some(head) = read_request(&mut stream) {
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                if heads.send(head).is_err() || stream.write_all(answer).is_err() {
                    break;
                }
            }
        }
    });
    (port, certificate.pem(), received)
}

/// The head of a request with a chunked body; `None`: the connection has ended.
fn read_request(stream: &mut impl Read) -> Option<String> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.ends_with(b"\r\n0\r\n\r\n") {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        request.extend(buffer.iter().take(count));
    }
    let text = String::from_utf8_lossy(&request);
    Some(text.split_once("\r\n\r\n")?.0.to_owned())
}

/// Writes a file with the secret into the folder of these variables. Returns its path.
fn secret_file(variables: &Variables, text: &str) -> String {
    let file = variables.folder().join("secret");
    fs::write(&file, format!("{text}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Fails if a file of the edge's state or a dump of its configuration has the secret.
fn assert_is_kept(edge: &Edge) {
    let admin = UnixStream::connect(&edge.admin).unwrap();
    let dump = exchange_on(admin, "GET /config_dump?include_eds", "");
    assert!(dump.contains("clusters") && !dump.contains(SECRET));
    assert!(!edge.log().contains(SECRET), "{}", edge.log());
    let mut files = 0;
    assert_has_none(&edge.folder().join("state"), &mut files);
    assert!(files > 0);
}

fn assert_has_none(folder: &Path, files: &mut usize) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            assert_has_none(&path, files);
        } else if kind.is_file() {
            let text = fs::read(&path).unwrap();
            let has = text
                .windows(SECRET.len())
                .any(|part| part == SECRET.as_bytes());
            assert!(!has, "{}", path.display());
            *files += 1;
        }
    }
}

#[test]
fn a_key_in_a_file_signs_requests() {
    let origin = Origin::start();
    let variables = Variables::new("s3://site/a.b", APPROVING)
        .set("AWS_ENDPOINT_URL_S3", &origin.url())
        .set("AWS_ACCESS_KEY_ID", "key");
    let file = secret_file(&variables, SECRET);
    let edge = variables.set("AWS_SECRET_ACCESS_KEY_FILE", &file).start();
    assert_eq!(
        status(&get(edge.port, "/site/a.b/x")),
        200,
        "{}",
        edge.log()
    );
    let signed = "\r\nauthorization: AWS4-HMAC-SHA256 Credential=key/";
    let requests = origin.requests();
    assert!(
        requests.iter().any(|request| request.contains(signed)),
        "{requests:?}"
    );
    assert_is_kept(&edge);
}

#[test]
fn a_collector_behind_tls_gets_spans_at_its_path_with_the_secret_header() {
    let (port, certificate, heads) = collector();
    let variables = Variables::new(&Origin::start().url(), DEAD);
    let ca = variables.folder().join("ca.pem");
    fs::write(&ca, certificate).unwrap();
    let file = secret_file(&variables, &format!("authorization=Bearer%20{SECRET}"));
    let edge = variables
        .set("SSL_CERT_FILE", ca.to_str().unwrap())
        .set(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            &format!("https://127.0.0.1:{port}/otlp"),
        )
        .set("OTEL_EXPORTER_OTLP_HEADERS_FILE", &file)
        .set("OTEL_RESOURCE_ATTRIBUTES", "zone=a")
        .start();
    let _ = get(edge.port, "/a");
    let head = heads.recv_timeout(PATIENCE).unwrap();
    assert!(
        head.starts_with("POST /otlp/v1/traces HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.contains(&format!("\r\nauthorization: Bearer {SECRET}")),
        "{head}"
    );
    assert_is_kept(&edge);
}

/// The value of this header in the last request of the origin.
fn last_header(origin: &Origin, name: &str) -> Option<String> {
    let request = origin.requests().pop()?;
    let lines = request.lines().map(str::to_ascii_lowercase);
    let mut lines =
        lines.filter_map(|line| Some(line.strip_prefix(&format!("{name}: "))?.to_owned()));
    let first = lines.next();
    assert_eq!(lines.next(), None, "{request}");
    first
}

#[test]
fn an_origin_gets_headers_from_a_variable_and_from_a_file_that_is_replaced() {
    let origin = Origin::start();
    let variables = Variables::new(&origin.url(), APPROVING).set("ORIGIN_SECRET", SECRET);
    let folder = variables.folder().join("tokens");
    fs::create_dir(&folder).unwrap();
    let (file, next) = (folder.join("token"), folder.join("next"));
    fs::write(&file, format!("{SECRET}-1\n")).unwrap();
    let policy = variables.folder().join("policy.yaml");
    let headers = format!(
        "{{x-origin-secret: {{env: ORIGIN_SECRET}}, X-Token: {{file: {}}}}}",
        file.display()
    );
    fs::write(&policy, format!("request: {{set_headers: {headers}}}\n")).unwrap();
    let edge = variables
        .set("SLUICE_POLICY", policy.to_str().unwrap())
        .start();
    assert_eq!(status(&get(edge.port, "/1")), 200, "{}", edge.log());
    assert_eq!(
        last_header(&origin, "x-origin-secret").as_deref(),
        Some(SECRET)
    );
    assert_eq!(last_header(&origin, "x-token"), Some(format!("{SECRET}-1")));
    assert_is_kept(&edge);
    fs::write(&next, format!("{SECRET}-2\n")).unwrap();
    fs::rename(&next, &file).unwrap();
    // The cache may have an earlier path.
    let mut path = 2..;
    eventually("the new value", || {
        get(edge.port, &format!("/{}", path.next().unwrap_or_default()));
        last_header(&origin, "x-token") == Some(format!("{SECRET}-2"))
    });
}

#[test]
fn a_header_for_the_origin_without_a_value_stops_the_start() {
    for (source, expected) in [
        (
            "{env: NOT_SET}",
            "request.set_headers.x-a.env: NOT_SET: must be set, to text",
        ),
        (
            "{file: /none}",
            "request.set_headers.x-a.file: \"/none\": expected a file that is text",
        ),
        (
            "{env: TWO_LINES}",
            "request.set_headers.x-a.env: TWO_LINES: expected one line of visible characters",
        ),
        (
            SECRET,
            "request.set_headers.x-a: expected {env: NAME} or {file: PATH}",
        ),
    ] {
        let variables = Variables::new("http://127.0.0.1:1", DEAD)
            .set("TWO_LINES", &format!("{SECRET}\nx-b: 1"));
        let policy = variables.folder().join("policy.yaml");
        fs::write(
            &policy,
            format!("request: {{set_headers: {{X-A: {source}}}}}\n"),
        )
        .unwrap();
        let (code, says) = variables
            .set("SLUICE_POLICY", policy.to_str().unwrap())
            .refused();
        assert_eq!(code, Some(1), "{says}");
        assert!(
            says.to_lowercase().contains(&expected.to_lowercase()) && !says.contains(SECRET),
            "{says}"
        );
    }
}

#[test]
fn a_misspelled_setting_stops_the_start() {
    let variables = Variables::new("http://127.0.0.1:1", DEAD).set("SLUICE_CACHE_MAX_BYTE", SECRET);
    let (code, says) = variables.refused();
    assert_eq!(code, Some(1), "{says}");
    let expected = "sluice: SLUICE_CACHE_MAX_BYTE: not a setting; is SLUICE_CACHE_MAX_BYTES meant?";
    assert!(says.contains(expected) && !says.contains(SECRET), "{says}");
}
