// SPDX-License-Identifier: Apache-2.0
//! A first origin that is well again gets its requests back, and a reload adds and removes a second origin.

use super::world::Pair;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::task::JoinSet;

#[tokio::test]
async fn the_first_origin_is_asked_again_after_its_ejection() {
    let pair = Pair::start().await;
    pair.first.refuse().await;
    let edge = pair.buckets().metrics().start().await;
    for number in 0..6 {
        let response = edge.get(&format!("/down-{number}")).await;
        assert_eq!(response.body, b"second", "{response}");
    }
    let metrics = sluice_tests::client::send(edge.metrics(), "GET", "/metrics", &[]).await;
    let metrics = String::from_utf8(metrics.body).unwrap();
    assert!(
        metrics.contains("sluice_second_origin_answers_total 6"),
        "{metrics}"
    );
    pair.first.listen().await;
    let asked = AtomicUsize::new(0);
    eventually("the first origin answers", async || {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        edge.get(&format!("/up-{number}")).await.body == b"first"
    })
    .await;
    let response = edge.get("/after").await;
    assert_eq!(response.body, b"first", "{response}");
}

/// Requests new objects until `stop` is set.
async fn ask(edge: std::net::SocketAddr, stop: Arc<AtomicBool>, served: Arc<AtomicUsize>) {
    let mut client = Client::connect(edge).await;
    while !stop.load(Ordering::Relaxed) {
        let number = served.fetch_add(1, Ordering::Relaxed);
        let path = format!("/load{number}");
        let headers = [("host", "a.test")];
        let response = client.exchange(request("GET", &path, &headers)).await;
        assert_eq!(response.status, 200, "{path}: {response}");
    }
}

#[tokio::test]
async fn a_reload_adds_and_removes_a_second_origin_under_load_and_no_request_fails() {
    let pair = Pair::start().await;
    let folder = tempfile::TempDir::with_prefix("sluice-failover-").unwrap();
    let file = folder.path().join("sites.yaml");
    let put = |second: bool| {
        let failover = match second {
            true => format!("\n  failover: {{origin: '{}'}}", pair.second.url()),
            false => String::new(),
        };
        let text = format!(
            "sites:\n- name: a\n  hosts: [a.test]\n  origin: {}{failover}\n",
            pair.first.url()
        );
        let part = file.with_extension("part");
        fs::write(&part, text).unwrap();
        fs::rename(part, &file).unwrap();
    };
    put(false);
    let mut edge = Builder::new()
        .env("SLUICE_SITES", file.to_str().unwrap())
        .start()
        .await;
    let (stop, served) = (Arc::default(), Arc::default());
    let mut load = JoinSet::new();
    for _ in 0..4 {
        load.spawn(ask(edge.address(), Arc::clone(&stop), Arc::clone(&served)));
    }
    for round in 0..6 {
        let second = round % 2 == 0;
        put(second);
        reload(&mut edge).await;
        let path = format!("/round{round}");
        pair.first
            .on(&path, sluice_tests::origin::Reply::status(503));
        let response =
            sluice_tests::client::send(edge.address(), "GET", &path, &[("host", "a.test")]).await;
        let expected = if second { 200 } else { 503 };
        assert_eq!(response.status, expected, "{path}: {response}");
        let before = served.load(Ordering::Relaxed);
        eventually("load", async || {
            served.load(Ordering::Relaxed) > before + 50
        })
        .await;
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = load.join_next().await {
        ended.unwrap();
    }
}

async fn reload(edge: &mut Edge) {
    let count = |edge: &Edge| edge.log().matches("sluice: reloaded").count();
    let before = count(edge);
    edge.signal(libc::SIGHUP);
    eventually("a reload", async || count(edge) > before).await;
}
