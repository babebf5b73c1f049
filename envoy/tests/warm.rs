// SPDX-License-Identifier: Apache-2.0
//! `sluice warm` requests the URLs of a list, a sitemap or a bucket as a client would.
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
        let bucket = format!("http://127.0.0.1:{}", self.port);
        let mut warming = Command::new(env!("CARGO_BIN_EXE_sluice"))
            .env("SLUICE_ORIGIN", "s3://assets/site")
            .env("SLUICE_S3_ENDPOINT", bucket)
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "reader")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
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
    let expected =
        r#"{"urls":5,"hits":1,"stored":2,"not_stored":1,"failed":1,"skipped":0,"bytes":15}"#;
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

/// A page of the bucket's listing.
fn page(token: Option<&str>, keys: &[&str]) -> String {
    let next = match token {
        Some(token) => format!(
            "<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>"
        ),
        None => "<IsTruncated>false</IsTruncated>".to_owned(),
    };
    let contents = |key: &&str| {
        format!(
            "<Contents><Key>{key}</Key><LastModified>2026-01-31T23:59:59.000Z</LastModified><Size>1</Size></Contents>"
        )
    };
    let contents: String = keys.iter().map(contents).collect();
    format!(
        "<ListBucketResult><Prefix>site%2Ffilms%2F</Prefix>{next}<EncodingType>url</EncodingType>{contents}\
         </ListBucketResult>"
    )
}

#[test]
fn the_objects_of_a_bucket_below_a_prefix_are_requested() {
    let edge = Edge::start(|path| {
        let is_listing = path.contains("list-type=2");
        let is_prefix = path.contains("prefix=site%2Ffilms%2F&");
        let body = match (
            is_listing,
            is_prefix,
            path.contains("continuation-token=1%2F%3D"),
        ) {
            (false, ..) => "12345".to_owned(),
            (true, true, false) => page(
                Some("1/="),
                &[
                    "site/films/",
                    "site/films/a+b%2B.mp4",
                    "site/films/.sluice/purges",
                    "site/films//c",
                ],
            ),
            (true, true, true) => page(None, &["site/films/%C3%BC/d", "site/films/../e"]),
            (true, false, _) => return (500, "", String::new()),
        };
        (200, "sluice; fwd=uri-miss; fwd-status=200; stored", body)
    });
    let arguments = [
        "--bucket-prefix",
        "films/",
        "--base",
        "http://a.test/",
        "--json",
    ];
    let output = edge.warm(&arguments, "");
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let expected =
        r#"{"urls":2,"hits":0,"stored":2,"not_stored":0,"failed":0,"skipped":3,"bytes":10}"#;
    assert_eq!(text(&output.stdout).trim(), expected);
    assert!(
        told.contains("keys that no URL below http://a.test/ names: 3, such as \"site/films/\""),
        "{told}"
    );
    let targets = edge.targets();
    let (listings, objects): (Vec<_>, Vec<_>) = targets
        .iter()
        .map(String::as_str)
        .partition(|target| target.contains("list-type"));
    assert_eq!(
        objects,
        ["a.test/films/%C3%BC/d", "a.test/films/a%20b%2B.mp4",]
    );
    let is_signed = |target: &&str| target.contains("X-Amz-Signature=");
    assert_eq!(listings.len(), 2, "{listings:?}");
    assert!(listings.iter().all(is_signed), "{listings:?}");
}

#[test]
fn a_bucket_that_cannot_be_listed_is_named_with_the_permission() {
    let edge = Edge::start(|path| match path.contains("list-type=2") {
        true => (
            403,
            "",
            "<Error><Code>AccessDenied</Code></Error>".to_owned(),
        ),
        false => (200, "sluice; hit", String::new()),
    });
    let arguments = ["--bucket-prefix", "", "--base", "http://a.test"];
    let output = edge.warm(&arguments, "");
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("s3://assets/site/: status 403: the keys may not list the bucket: allow s3:ListBucket on arn:aws:s3:::assets"),
        "{told}"
    );
}
