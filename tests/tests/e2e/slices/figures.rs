// SPDX-License-Identifier: Apache-2.0
//! Bounds on times and CPU time of a large object, with room for a busy machine. The bench story `large` measures them.

use super::world::{Asked, SLICE, settle};
use sluice_tests::chance::rng::Rng;
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::http::body;
use sluice_tests::machine::process::cpu_time;
use sluice_tests::origin::{Origin, Reply};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Size of the object, in bytes and in slices.
const SIZE: usize = 64 << 20;
const COUNT: usize = SIZE / SLICE;
const PATH: &str = "/figures.iso";
/// Bytes that most clients of the crowd read.
const PART: usize = 2 << 20;
/// Clients of the crowd, and the time in which they arrive.
const CLIENTS: usize = 50;
const ARRIVAL: Duration = Duration::from_secs(5);
/// Greatest median of the time to the first byte.
const FIRST_BYTE: Duration = Duration::from_millis(300);
/// Least rate of a cold object in slices, as a part of the rate of the whole object.
const RATE: f64 = 0.7;
/// Greatest CPU time of a hit in slices, as a multiple of the CPU time of a hit of the whole object.
const CPU: f64 = 2.5;
/// Number of cold objects for the rate.
const OBJECTS: usize = 3;
/// Number of hits for the CPU time.
const HITS: u32 = 8;

/// An origin that is 30 ms away and sends about 80 MiB/s.
async fn distant() -> Origin {
    let origin = Origin::start().ready().await;
    let reply = Reply::ok(SIZE).version(1).max_age(600);
    let reply = reply.delay(Duration::from_millis(30));
    let reply = reply.pace(256 << 10, Duration::from_millis(3));
    origin.on(PATH, reply.clone());
    for number in 0..OBJECTS {
        origin.on(&cold_path(number), reply.clone());
    }
    origin
}

fn cold_path(number: usize) -> String {
    format!("/cold-{number}.iso")
}

/// An edge that stores the object as a whole.
fn whole(origin: &Origin) -> Builder {
    let edge = Edge::http(origin).origin_decides();
    edge.env("SLUICE_CACHE_MAX_OBJECT_BYTES", "128MiB")
}

/// Reads these bytes of the object, over HTTP/2 if there is a connection. Returns the time to the first byte.
async fn read(edge: SocketAddr, http2: Option<&Http2>, bytes: Range<usize>) -> Duration {
    let range = format!("bytes={}-{}", bytes.start, bytes.end - 1);
    let fields = [("range", range.as_str())];
    let (fields, status) = if bytes.len() < SIZE {
        (&fields[..], 206)
    } else {
        (&fields[..0], 200)
    };
    let (sent, mut first, mut at) = (Instant::now(), None, bytes.start);
    let mut take = |some: Vec<u8>| {
        first.get_or_insert_with(|| sent.elapsed());
        let next = at + some.len();
        assert!(
            at < next && some == body::part(PATH, 1, SIZE, at..next),
            "byte {at}"
        );
        at = next;
        at < bytes.end
    };
    if let Some(connection) = http2 {
        let mut stream = connection.start("GET", PATH, fields).await.unwrap();
        assert_eq!(stream.head().await.unwrap().0, status);
        while take(stream.read(1).await.unwrap()) {}
    } else {
        let mut client = Client::connect(edge).await;
        client.send(request("GET", PATH, fields)).await.unwrap();
        assert_eq!(client.head().await.unwrap().1.status, status);
        while take(client.some(SLICE).await.unwrap()) {}
    }
    first.unwrap()
}

/// Visitor `number` of a crowd: the bytes that it reads. Each tenth reads the whole object, and the others a part.
fn bytes_of(number: usize, rng: &mut Rng) -> Range<usize> {
    if number.is_multiple_of(10) {
        return 0..SIZE;
    }
    let from = rng.below(SIZE - PART);
    from..from + PART
}

#[tokio::test]
#[ignore = "times of an idle machine: make soak"]
async fn fifty_clients_of_a_cold_object_get_their_first_byte_at_once_and_fetch_each_slice_once() {
    let origin = distant().await;
    let edge = Edge::http(&origin).origin_decides();
    let edge = edge.workers(2).start().await;
    let connection = Arc::new(Http2::connect(edge.address()).await);
    let mut rng = Rng::new(50);
    let mut reading = JoinSet::new();
    for number in 0..CLIENTS {
        let due = ARRIVAL * u32::try_from(rng.below(1_000)).unwrap() / 1_000;
        let bytes = bytes_of(number, &mut rng);
        let http2 = number.is_multiple_of(2).then(|| Arc::clone(&connection));
        let address = edge.address();
        reading.spawn(async move {
            tokio::time::sleep(due).await;
            read(address, http2.as_deref(), bytes).await
        });
    }
    let mut times = reading.join_all().await;
    times.sort();
    settle(&origin).await;
    let asked = Asked::of_length(origin.requests(), PATH, SIZE);
    assert!(asked.heads <= 1, "{asked:?}");
    assert_eq!(asked.wholes, 0);
    asked.assert_each_once(COUNT);
    let median = times[CLIENTS / 2];
    println!("first byte: {median:?} of {times:?}");
    assert!(median < FIRST_BYTE, "{times:?}");
}

/// The shortest time of a client that reads a cold object.
async fn shortest(edge: Edge) -> Duration {
    let mut times = Vec::new();
    for number in 0..OBJECTS {
        let mut client = Client::connect(edge.address()).await;
        let sent = Instant::now();
        let response = client.get(&cold_path(number)).await;
        times.push(sent.elapsed());
        assert_eq!((response.status, response.body.len()), (200, SIZE));
    }
    println!("cold: {times:?}");
    times.into_iter().min().unwrap()
}

#[tokio::test]
#[ignore = "times of an idle machine: make soak"]
async fn one_client_of_a_cold_object_gets_it_in_slices_nearly_as_fast_as_the_whole() {
    let origin = distant().await;
    let slices = Edge::http(&origin).origin_decides().start();
    let slices = shortest(slices.await).await;
    let whole = shortest(whole(&origin).start().await).await;
    let rate = whole.as_secs_f64() / slices.as_secs_f64();
    println!("rate in slices: {rate:.2} of that of the whole");
    assert!(rate >= RATE, "{rate:.2}");
}

/// The CPU time of Envoy for a hit of the object.
async fn hit(edge: Edge) -> Duration {
    let mut client = Client::connect(edge.address()).await;
    // Two reads store it: the first client of an object in slices may get it as it passes.
    for _ in 0..2 {
        assert_eq!(client.get(PATH).await.body.len(), SIZE);
    }
    let before = cpu_time(edge.envoy_pid()).unwrap();
    for _ in 0..HITS {
        let response = client.get(PATH).await;
        assert!(response.is_hit(), "{response}");
    }
    (cpu_time(edge.envoy_pid()).unwrap() - before) / HITS
}

#[tokio::test]
async fn a_hit_in_slices_costs_little_more_cpu_time_than_that_of_the_whole() {
    let origin = distant().await;
    let slices = Edge::http(&origin).origin_decides().start();
    let slices = hit(slices.await).await;
    let whole = hit(whole(&origin).start().await).await;
    let ratio = slices.as_secs_f64() / whole.as_secs_f64();
    println!("CPU time of a hit: {slices:?} in slices, {whole:?} whole, {ratio:.2} times");
    assert!(ratio <= CPU, "{ratio:.2}");
}
