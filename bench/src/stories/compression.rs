// SPDX-License-Identifier: Apache-2.0
//! CPU time of a compressed hit in Envoy: compressed once, on its way into the cache, or by a filter of the listener
//! for each request.

use crate::figures::format::whole;
use crate::figures::{Conclusions, Rounds, Table};
use crate::machine;
use crate::machine::usage::Bystander;
use crate::origins::feed::{self, feed};
use crate::peers::WORKERS;
use crate::progress::Progress;
use crate::report::{Report, bars};
use serde_json::{Value, json};
use sluice_tests::bare::Bare;
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::Store;
use sluice_tests::eventually;
use sluice_tests::machine::process;
use sluice_tests::origin::{Origin, Reply};
use std::net::SocketAddr;
use tokio::task::JoinSet;

const PATH: &str = "/feed.json";
/// Kept-alive connections, each with one request at a time.
const CONNECTIONS: usize = 8;
const COMPRESSING: &str = "origin: {kind: http}\ncompression: {enabled: true}\n";
/// Values of `Accept-Encoding`, which are also the codings of the responses.
const CODINGS: [&str; 4] = ["br", "zstd", "gzip", "identity"];

/// An Envoy under test.
struct Server {
    name: &'static str,
    address: SocketAddr,
    pid: u32,
}

/// All rounds of one server with one coding.
struct Row {
    server: &'static str,
    coding: &'static str,
    /// Size of a response's body.
    bytes: usize,
    /// Microseconds of CPU time for each request.
    rounds: Rounds<f64>,
}

pub async fn run(quick: bool) -> Report {
    let (rounds, requests) = if quick { (1, 160) } else { (10, 800) };
    let before = machine::load();
    let origin = Origin::start().ready().await;
    let object = Reply::text(feed()).header("content-type", "application/json");
    origin.on(PATH, object.max_age(86_400).etag("v1"));
    eprintln!("starting the servers");
    let ours = Edge::http(&origin).policy(COMPRESSING);
    let ours = ours.start().await;
    let bare = Bare::with_filters(&origin, Store::V1_DISK, WORKERS, &add_compressors).await;
    let servers = [
        Server {
            name: "Sluice",
            address: ours.address(),
            pid: ours.envoy_pid(),
        },
        Server {
            name: "bare Envoy",
            address: bare.address(),
            pid: bare.pid(),
        },
    ];
    let mut rows = Vec::new();
    for coding in CODINGS {
        for server in &servers {
            rows.push(Row {
                server: server.name,
                coding,
                bytes: warm(server, coding).await,
                rounds: Rounds::default(),
            });
        }
    }
    let fetched = origin.count(PATH);
    let progress = Progress::of(rounds);
    for number in 1..=rounds {
        progress.step(format_args!("round {number}"));
        for (row, place) in rows.iter_mut().zip(0..) {
            let server = &servers[place % servers.len()];
            row.rounds.add(measure(server, row.coding, requests).await);
        }
    }
    assert_eq!(
        origin.count(PATH),
        fetched,
        "what was measured were no hits"
    );
    drop((ours, bare));
    report(
        &rows,
        &format!("{rounds} rounds of {requests} requests"),
        before,
    )
}

/// Puts compressors like those of the hop in front of the cache, where they see each response.
fn add_compressors(filters: &mut Vec<Value>) {
    const EXTENSIONS: &str = "type.googleapis.com/envoy.extensions";
    let at = filters.iter().position(|filter| filter["name"] == "cache");
    let at = at.expect("a cache filter");
    for (name, message, level) in [
        (
            "gzip",
            "gzip.compressor.v3.Gzip",
            json!({"compression_level": "COMPRESSION_LEVEL_6"}),
        ),
        (
            "zstd",
            "zstd.compressor.v3.Zstd",
            json!({"compression_level": 6}),
        ),
        ("br", "brotli.compressor.v3.Brotli", json!({"quality": 5})),
    ] {
        let mut library = level;
        library["@type"] = format!("{EXTENSIONS}.compression.{message}").into();
        let filter = json!({
            "name": name,
            "typed_config": {
                "@type": format!("{EXTENSIONS}.filters.http.compressor.v3.Compressor"),
                "response_direction_config": {
                    "common_config": {
                        "min_content_length": 1000,
                        "content_type_matcher": [{"exact": "application/json"}],
                    },
                    "weaken_etag_on_compress": true,
                },
                "compressor_library": {"name": name, "typed_config": library},
            },
        });
        filters.insert(at, filter);
    }
}

fn ask(coding: &str) -> Vec<u8> {
    request("GET", PATH, &[("accept-encoding", coding)])
}

/// Whether the response is a hit of that coding.
fn is_right(response: &Response, coding: &str) -> bool {
    let found = response
        .headers
        .get("content-encoding")
        .unwrap_or("identity");
    response.status == 200 && found == coding && response.headers.get("age").is_some()
}

/// Waits until the object is in the cache; returns the length of its body.
async fn warm(server: &Server, coding: &str) -> usize {
    let mut bytes = 0;
    eventually(
        &format!("a hit of {} in {coding}", server.name),
        async || {
            let mut client = Client::connect(server.address).await;
            let response = client.exchange(ask(coding)).await;
            bytes = response.body.len();
            is_right(&response, coding)
        },
    )
    .await;
    bytes
}

async fn measure(server: &Server, coding: &'static str, requests: usize) -> (f64, f64) {
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        clients.push(Client::connect(server.address).await);
    }
    let taken = || process::cpu_time(server.pid).expect("a running Envoy");
    let (bystander, before) = (Bystander::start(), taken());
    let mut asking = JoinSet::new();
    for mut client in clients {
        asking.spawn(async move {
            for _ in 0..requests / CONNECTIONS {
                let response = client.exchange(ask(coding)).await;
                assert!(is_right(&response, coding), "{response}");
            }
        });
    }
    asking.join_all().await;
    let each = (taken() - before) / u32::try_from(requests).unwrap();
    (each.as_secs_f64() * 1e6, bystander.foreign())
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let times = self.rounds.of(|time| *time);
        let (server, coding) = (self.server.to_owned(), self.coding.to_owned());
        vec![
            server,
            coding,
            self.bytes.to_string(),
            whole(times.median()),
            times.range(whole),
        ]
    }
}

fn report(rows: &[Row], rounds: &str, before: f64) -> Report {
    let columns = "us of CPU per request | coding | bytes | p50 | by round";
    let picture = |coding: &str| {
        let of_coding = rows.iter().filter(|row| row.coding == coding);
        let bar = |row: &Row| (row.server, row.rounds.of(|time| *time).median());
        let title = format!("CPU time of a hit of {} bytes, {coding}", feed::SIZE);
        (coding.to_owned(), bars(title, "us", of_coding.map(bar)))
    };
    Report {
        title: "CPU time of a compressed hit".to_owned(),
        about: format!(
            "{} bytes, {rounds}, in turn, {WORKERS} workers\n{}",
            feed::SIZE,
            machine::described(before, rows.iter().flat_map(|row| row.rounds.foreign())),
        ),
        tables: vec![Table::new(columns, rows.iter().map(Row::cells))],
        findings: findings(rows),
        pictures: CODINGS.map(picture).to_vec(),
        ..Report::default()
    }
}

/// Each coding, compressed once and for each response.
fn findings(rows: &[Row]) -> Conclusions {
    let (pairs, _) = rows.as_chunks::<2>();
    let mut findings = Conclusions::default();
    for [ours, theirs] in pairs {
        let times = |row: &Row| (row.server, row.rounds.of(|time| *time));
        findings.compare(
            format!("CPU time, {}", ours.coding),
            times(ours),
            times(theirs),
        );
    }
    findings
}
