// SPDX-License-Identifier: Apache-2.0
//! A reload may add, narrow and widen rules. A wrong file leaves the old rules in force.

use std::path::Path;

use sluice_tests::client::{Client, request};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;

use super::world::{KEY, Rules, assert_refused, origin, target};

fn sites(origin: &str, access: &str) -> String {
    format!("sites:\n- name: docs\n  origin: {origin}\n{access}")
}

async fn reload(edge: &mut Edge, path: &Path, text: &str, says: &str) {
    let part = path.with_extension("part");
    std::fs::write(&part, text).unwrap();
    std::fs::rename(part, path).unwrap();
    let before = edge.log().matches(says).count();
    edge.signal(libc::SIGHUP);
    eventually("a reload", async || {
        edge.log().matches(says).count() > before
    })
    .await;
}

#[tokio::test]
async fn a_site_that_gains_rules_answers_nobody_else_on_connections_old_and_new() {
    let origin = origin().await;
    let rules = Rules::new("");
    let file = rules.0.path().join("sites.yaml");
    std::fs::write(&file, sites(&origin.url(), "")).unwrap();
    let edge = Builder::new()
        .env("SLUICE_SITES", file.to_str().unwrap())
        .env("SLUICE_TRUSTED_HOPS", "1")
        .workers(2);
    let mut edge = edge.start().await;
    let outside = [("x-forwarded-for", "198.51.100.7")];
    let mut connections = Vec::new();
    for _ in 0..8 {
        let mut connection = Client::connect(edge.address()).await;
        connection.heat("/a", &outside).await;
        connections.push(connection);
    }
    let fenced = sites(&origin.url(), "  access: {allow: [10.0.0.0/8]}\n");
    reload(&mut edge, &file, &fenced, "sluice: reloaded: policies").await;
    eventually("the rules on all workers", async || {
        let mut all = true;
        for _ in 0..8 {
            all &= edge.send("GET", "/a", &outside).await.status == 403;
        }
        all
    })
    .await;
    for connection in &mut connections {
        let response = connection.exchange(request("GET", "/a", &outside)).await;
        assert_refused(&response, "an old connection");
    }
    let wrong = sites(&origin.url(), "  access: {allow: []}\n");
    reload(&mut edge, &file, &wrong, "reload refused").await;
    assert!(
        edge.log().contains("sites[0].access.allow: an empty list"),
        "{}",
        edge.log()
    );
    assert_refused(&edge.send("GET", "/a", &outside).await, "a wrong file");
    reload(
        &mut edge,
        &file,
        &sites(&origin.url(), ""),
        "sluice: reloaded: policies",
    )
    .await;
    eventually("an open site", async || {
        edge.send("GET", "/a", &outside).await.status == 200
    })
    .await;
}

#[tokio::test]
async fn a_key_in_a_file_is_replaced_by_a_reload() {
    let origin = origin().await;
    let rules = Rules::new("any_of: [{signed: {keys: {a: {file: key}}}}]\n");
    let key = rules.0.path().join("key");
    std::fs::write(&key, format!("{KEY}\n")).unwrap();
    let mut edge = rules.edge(&origin).start().await;
    let arguments = ["http://edge.test/a", "--expires", "1h"];
    let former = target(&super::world::sign(&edge, &arguments));
    assert_eq!(edge.get(&former).await.status, 200);
    let says = "sluice: reloaded: policies";
    reload(&mut edge, &key, &KEY.to_uppercase(), says).await;
    eventually("the new key", async || {
        edge.get(&former).await.status == 403
    })
    .await;
    let newer = target(&super::world::sign(&edge, &arguments));
    eventually("the new key on all workers", async || {
        edge.get(&newer).await.status == 200
    })
    .await;
    reload(&mut edge, &key, "short", "reload refused").await;
    assert!(
        edge.log().contains("expected a key of 32 to 1024 bytes"),
        "{}",
        edge.log()
    );
    assert!(!edge.log().contains("short"), "{}", edge.log());
    assert_eq!(edge.get(&newer).await.status, 200);
}
