// SPDX-License-Identifier: Apache-2.0
//! The container's entry point is the one that runs here, with the variables that its image sets.

use sluice::setting_docs;
use sluice_tests::edge::{Builder, Edge, repository};
use sluice_tests::minio::Bucket;
use std::collections::BTreeMap;

fn dockerfile() -> String {
    std::fs::read_to_string(repository().join("envoy/Dockerfile")).unwrap()
}

/// The instructions of the last stage, with continued lines joined.
fn instructions() -> Vec<String> {
    let text = dockerfile().replace("\\\n", " ");
    let lines = text.lines().map(str::trim);
    let lines: Vec<_> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let last = lines.iter().rposition(|line| line.starts_with("FROM "));
    lines[last.unwrap() + 1..]
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}

/// The arguments of the instructions of this name.
fn all(name: &str) -> Vec<String> {
    let lines = instructions().into_iter();
    let arguments = lines.filter_map(|line| {
        let (word, rest) = line.split_once(char::is_whitespace)?;
        (word == name).then(|| rest.trim().to_owned())
    });
    arguments.collect()
}

/// What `ENV` sets.
fn variables() -> BTreeMap<String, String> {
    let words: Vec<_> = all("ENV")
        .iter()
        .flat_map(|line| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    let pairs = words.iter().map(|word| {
        let (name, value) = word.split_once('=').unwrap_or_else(|| panic!("ENV {word}"));
        (name.to_owned(), value.trim_matches('"').to_owned())
    });
    pairs.collect()
}

#[test]
fn the_image_sets_only_variables_that_there_are() {
    let variables = variables();
    for name in variables.keys() {
        assert!(setting_docs::find(name).is_some(), "ENV {name}");
    }
    assert_eq!(variables.get("BIND").map(String::as_str), Some("0.0.0.0"));
}

#[test]
fn the_image_is_not_roots_and_is_watched() {
    let user = all("USER").pop().expect("a USER");
    assert!(
        !matches!(user.split(':').next(), Some("root" | "0")),
        "{user}"
    );
    let entry = all("ENTRYPOINT").pop().expect("an ENTRYPOINT");
    assert!(entry.contains("sluice"), "{entry}");
    let check = all("HEALTHCHECK").pop().expect("a HEALTHCHECK");
    assert!(
        check.contains("sluice") && check.contains("healthcheck"),
        "{check}"
    );
}

/// With the variables of the image.
fn as_in_the_image(mut edge: Builder) -> Builder {
    for (name, value) in variables() {
        // What is a place in the image is elsewhere here, and tests do not listen on all addresses.
        if !value.starts_with('/') && name != "BIND" && !name.ends_with("_PORT") {
            edge = edge.env(&name, value);
        }
    }
    edge.env("BIND", "127.0.0.1")
}

#[tokio::test]
async fn a_ready_made_policy_needs_no_file_in_the_container() {
    let bucket = Bucket::new().await;
    bucket.put("index.html", &[], b"<h1>app</h1>").await;
    bucket.put("assets/app.3f9c2d.js", &[], b"run()").await;
    let page = [("accept", "text/html,*/*;q=0.8")];
    for (policy, status) in [(Some("spa"), 200), (None, 404)] {
        let edge = as_in_the_image(Edge::bucket(&bucket));
        let edge = match policy {
            Some(name) => edge.env("POLICY", name),
            None => edge,
        };
        let edge = edge.start().await;
        let route = edge.send("GET", "/users/42", &page).await;
        assert_eq!(route.status, status, "{policy:?}: {route}");
        let asset = edge.get("/assets/app.3f9c2d.js").await;
        let year = asset.header("cache-control").contains("immutable");
        assert_eq!(year, policy.is_some(), "{policy:?}: {asset}");
    }
}

#[tokio::test]
async fn the_entry_point_runs_as_in_the_container() {
    let bucket = Bucket::new().await;
    bucket.put_stamped("a", 1, 1000).await;
    let edge = as_in_the_image(Edge::bucket(&bucket)).start().await;
    for _ in 0..2 {
        let _ = edge.get("/a").await.stamp("/a");
    }
    assert_eq!(bucket.count("a"), 1);
    assert_eq!(edge.healthcheck(), Some(0));
    let environment = std::fs::read(format!("/proc/{}/environ", edge.envoy_pid())).unwrap();
    assert!(!environment.is_empty());
}

#[tokio::test]
async fn the_health_check_fails_when_nobody_answers_or_the_edge_drains() {
    let origin = sluice_tests::origin::Origin::start().ready().await;
    let gate = sluice_tests::gate::Gate::new();
    origin.on("/a", sluice_tests::origin::Reply::ok(1000).hold(&gate));
    let mut edge = Edge::http(&origin).start().await;
    assert_eq!(edge.healthcheck(), Some(0));
    let flight = sluice_tests::crowd::Crowd::connect(edge.address(), 1)
        .await
        .fire("/a");
    gate.wait_reached(1).await;
    edge.signal(libc::SIGTERM);
    sluice_tests::eventually("it drains", async || {
        edge.get("/healthz").await.status == 503
    })
    .await;
    assert_eq!(edge.healthcheck(), Some(1));
    gate.open();
    flight.land().await.same_object("/a");
    let check = edge.healthcheck_command();
    assert_eq!(edge.ended().await.0, Some(0));
    assert_eq!({ check }.status().unwrap().code(), Some(1));
}
