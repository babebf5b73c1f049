// SPDX-License-Identifier: Apache-2.0
//! `sluice warm` requests the URLs of a list or a sitemap as a client would.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::io::{BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use support::read_head;

/// A server that answers each path as this function says: status, `Cache-Status` and body.
type Answer = fn(&str) -> (u16, &'static str, String);

/// An edge of a test: its port, and the requests that it got, with their headers.
struct Edge {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Edge {
    fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let noted = Arc::clone(&noted);
                std::thread::spawn(move || serve(stream, answer, &noted));
            }
        });
        Self { port, requests }
    }

    fn warm(&self, arguments: &[&str], list: &str) -> Output {
        self.warm_at("10000", arguments, list)
    }

    fn warm_at(&self, rate: &str, arguments: &[&str], list: &str) -> Output {
        let mut warming = Command::new(env!("CARGO_BIN_EXE_sluice"))
            .arg("warm")
            .args(arguments)
            .args([
                "--connect",
                &format!("127.0.0.1:{}", self.port),
                "--rate",
                rate,
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that reads no list has no reader.
        let _ = warming.stdin.take().unwrap().write_all(list.as_bytes());
        warming.wait_with_output().unwrap()
    }

    /// The targets of the requests with their hosts, sorted.
    fn targets(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let target = |head: &String| {
            let path = head.split(' ').nth(1).unwrap_or_default();
            let mut lines = head.lines().map(str::to_ascii_lowercase);
            let host = lines.find_map(|line| line.strip_prefix("host: ").map(str::to_owned));
            format!("{}{path}", host.unwrap_or_default())
        };
        let mut targets: Vec<_> = requests.iter().map(target).collect();
        targets.sort();
        targets
    }
}

fn serve(mut stream: TcpStream, answer: Answer, requests: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let Some(head) = read_head(&mut reader) else {
            return;
        };
        let (status, cache_status, body) = answer(head.split(' ').nth(1).unwrap_or_default());
        requests.lock().unwrap().push(head);
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} Any\r\ncache-status: {cache_status}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_list_is_requested_once_each_and_the_results_are_counted() {
    let edge = Edge::start(|path| match path {
        "/hit" => (200, "sluice; hit; ttl=5", "12345".to_owned()),
        "/gone" => (404, "sluice; fwd=uri-miss; stored", String::new()),
        "/once" => (
            200,
            "sluice; fwd=uri-miss; detail=set-cookie",
            String::new(),
        ),
        _ => (
            200,
            "sluice; fwd=uri-miss; fwd-status=200; stored",
            "12345".to_owned(),
        ),
    });
    let list =
        "http://a.test/hit\n/once?a=1\nfilms/a b.mp4\n/once\n# no URL\n\nhttp://b.test/gone\n";
    let output = edge.warm(&["-", "--base", "http://a.test/", "--json"], list);
    let counted = text(&output.stdout);
    let expected = r#"{"urls":5,"hits":1,"stored":2,"not_stored":1,"failed":1,"bytes":15}"#;
    assert_eq!(counted.trim(), expected);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(
        told.contains("sluice: http://b.test/gone: the status is 404"),
        "{told}"
    );
    let expected = [
        "a.test/films/a%20b.mp4",
        "a.test/hit",
        "a.test/once",
        "a.test/once?a=1",
        "b.test/gone",
    ];
    assert_eq!(edge.targets(), expected);
    let requests = edge.requests.lock().unwrap();
    let coded = |head: &String| {
        head.to_lowercase()
            .contains("\r\naccept-encoding: gzip, deflate, br, zstd\r\n")
    };
    assert!(requests.iter().all(coded), "{requests:?}");
}

#[test]
fn a_sitemap_gives_the_pages_of_its_own_host() {
    let edge = Edge::start(|path| {
        let locations = |paths: &[&str]| {
            paths
                .iter()
                .map(|path| format!("<loc>{path}</loc>"))
                .collect::<String>()
        };
        let body = match path {
            "/sitemap.xml" => format!(
                "<sitemapindex>{}</sitemapindex>",
                locations(&["http://a.test/1.xml", "http://evil.test/2.xml"])
            ),
            "/1.xml" => format!(
                "<urlset>{}</urlset>",
                locations(&[
                    "http://a.test/?a=1&amp;b=2",
                    "http://a.test/x",
                    "http://evil.test/y"
                ])
            ),
            _ => String::new(),
        };
        (200, "sluice; fwd=uri-miss; fwd-status=200; stored", body)
    });
    let output = edge.warm(&["--sitemap", "http://a.test/sitemap.xml"], "");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let counted = text(&output.stdout);
    assert!(
        counted.starts_with("2 of 2 URLs: 0 hits, 2 stored, 0 not stored, 0 failed; 0.0 MiB; "),
        "{counted}"
    );
    let expected = [
        "a.test/1.xml",
        "a.test/?a=1&b=2",
        "a.test/sitemap.xml",
        "a.test/x",
    ];
    assert_eq!(edge.targets(), expected);
}

#[test]
fn the_rate_is_a_bound_for_all_requests_together() {
    let edge = Edge::start(|_| (200, "sluice; hit", String::new()));
    let list = "/a\n/b\n/c\n/d\n/e\n";
    let begin = Instant::now();
    let output = edge.warm_at("20", &["-", "--base", "http://a.test"], list);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    // The fifth request is due after four pauses.
    assert!(
        begin.elapsed() >= Duration::from_millis(200),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn a_list_that_cannot_be_read_is_named() {
    let edge = Edge::start(|_| (200, "sluice; hit", String::new()));
    for (arguments, list, expected) in [
        (&["/none/list"][..], "", "/none/list: "),
        (
            &["-"],
            "/a\n",
            "-: line 1: \"/a\": expected a URL, or --base to be set",
        ),
        (&["-"], "# nothing\n", "expected at least one URL"),
        (
            &["--sitemap", "http://a.test/x"],
            "",
            "http://a.test/x: expected a sitemap in XML",
        ),
    ] {
        let output = edge.warm(arguments, list);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(expected), "{told}");
    }
}
