// SPDX-License-Identifier: Apache-2.0
//! Replicas in a whole cluster: they come, they go, they are killed, they keep their volumes, and all get a purge.

use crate::release::{NAMESPACE, Release, both, is_in_cluster, load};
use serde_json::{Value, json};
use sluice_tests::bucket::REGION;
use sluice_tests::client::{self, Client, request};
use sluice_tests::eventually;
use sluice_tests::machine::tool::{entry_point, repository};
use sluice_tests::server::requests::Request;
use std::process::Command;
use std::time::Instant;

#[tokio::test]
#[ignore = "long: make test-chart-all"]
async fn replicas_come_and_go_under_load_and_a_killed_one_loses_only_the_requests_in_its_hands() {
    if !is_in_cluster() {
        return;
    }
    let release = Release::install(&json!({})).await;
    let balancer = release.balancer().await;
    let targets = release.objects(20).await;
    let kept = load(balancer.address(), &targets, true);
    let begun = Instant::now();
    kept.more(100).await;
    for replicas in [4, 1, 3] {
        let scaled = release.helm("upgrade", &json!({"replicaCount": replicas}));
        assert!(scaled.status.success(), "{}", both(&scaled));
        eventually("the endpoints", async || {
            balancer.endpoints().len() == replicas
        })
        .await;
        release.settle(replicas).await;
        kept.more(100).await;
    }
    let seen = kept.since(begun);
    println!("scaling from 2 to 4, 1 and 3 replicas: {seen}");
    assert_eq!(seen.failures, Vec::<String>::new());
    kept.stop();

    // A replica has a request in its hands when it is killed.
    release.bucket.put_stamped("held.bin", 1, 2_000).await;
    let gate = release
        .bucket
        .proxy()
        .hold(&release.bucket.target("held.bin"));
    let (name, address, _) = release.pods().remove(0);
    let mut held = Client::connect(address).await;
    held.send(request("GET", "/held.bin", &[])).await.unwrap();
    gate.wait_reached(1).await;
    let fresh = load(balancer.address(), &targets, false);
    fresh.more(100).await;
    release.kubelet.kill(NAMESPACE, &name).await;
    let killed = Instant::now();
    let lost = held.response().await;
    assert!(lost.is_err(), "{lost:?}");
    gate.open();
    eventually("the container runs again", async || {
        let pods = release.pods();
        let mut again = pods
            .iter()
            .filter(|(pod, _, restarts)| *pod == name && *restarts == 1);
        again.next().is_some() && balancer.endpoints().contains(&address)
    })
    .await;
    fresh.more(500).await;
    let seen = fresh.since(killed);
    println!("a killed replica: {seen}");
    assert_eq!(seen.failures, Vec::<String>::new());
    fresh.stop();

    // Control: replicas that end at once, while the balancer still sends requests to them.
    let at_once = release.helm("upgrade", &json!({"replicaCount": 3, "minDrainSeconds": 0}));
    assert!(at_once.status.success(), "{}", both(&at_once));
    release.settle(3).await;
    let kept = load(balancer.address(), &targets, true);
    let begun = Instant::now();
    kept.more(100).await;
    release.roll_out("deployment").await;
    let seen = kept.since(begun);
    println!("a rollout without a least drain time: {seen}");
    assert!(!seen.failures.is_empty());
}

/// The CronJob of the documents, for the bucket of the release.
fn purge_job(release: &Release) -> Value {
    let text = std::fs::read_to_string(repository().join("docs/kubernetes.md")).unwrap();
    let mut blocks = text
        .split("```yaml\n")
        .map(|block| block.split("```").next().unwrap());
    let block = blocks
        .find(|block| block.contains("kind: CronJob"))
        .expect("a CronJob");
    let mut job: Value = serde_saphyr::from_str(block).unwrap();
    let container = &mut job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0];
    container["env"] = json!([
        {"name": "SLUICE_ORIGIN", "value": format!("s3://{}", release.bucket.name())},
        {"name": "SLUICE_S3_ENDPOINT", "value": release.bucket.endpoint()},
        {"name": "AWS_REGION", "value": REGION},
    ]);
    job
}

/// Creates the feed of the bucket.
fn create_feed(release: &Release) {
    let server = release.bucket.server();
    let created = Command::new(entry_point())
        .env_clear()
        .args(["purge", "--feed", "--init"])
        .env("SLUICE_ORIGIN", format!("s3://{}", release.bucket.name()))
        .env("SLUICE_S3_ENDPOINT", release.bucket.endpoint())
        .env("AWS_REGION", REGION)
        .env("AWS_ACCESS_KEY_ID", &server.access_key)
        .env("AWS_SECRET_ACCESS_KEY", &server.secret_key)
        .output()
        .unwrap();
    assert!(created.status.success(), "{}", both(&created));
}

#[tokio::test]
#[ignore = "long: make test-chart-all"]
async fn a_replica_serves_from_its_kept_volume_and_a_purge_of_the_feed_reaches_all() {
    if !is_in_cluster() {
        return;
    }
    let release = Release::install(&json!({"persistence": {"enabled": true}})).await;
    let balancer = release.balancer().await;
    let targets = release.objects(20).await;
    release.bucket.put("assets/a.txt", &[], b"old").await;
    let everywhere = async || {
        for (_, pod, _) in release.pods() {
            client::until_hit(pod, "/assets/a.txt").await;
            for target in &targets {
                client::until_hit(pod, target).await;
            }
        }
    };
    everywhere().await;
    let fetched = || {
        let is_whole = |request: &Request| {
            let head = request.method == "HEAD";
            !head && request.target.ends_with(".bin")
        };
        release.bucket.requests().matching(is_whole)
    };
    assert_eq!(fetched(), 2 * targets.len());

    let kept = load(balancer.address(), &targets, true);
    let begun = Instant::now();
    kept.more(100).await;
    release.roll_out("statefulset").await;
    kept.more(100).await;
    let seen = kept.since(begun);
    println!("a rollout of replicas with volumes: {seen}");
    assert_eq!(seen.failures, Vec::<String>::new());
    kept.stop();
    everywhere().await;
    assert_eq!(fetched(), 2 * targets.len());

    // The purge of the documents.
    create_feed(&release);
    let with_feed = release.helm("upgrade", &json!({"purge": {"feed": {"every": "2s"}}}));
    assert!(with_feed.status.success(), "{}", both(&with_feed));
    everywhere().await;
    let server = release.bucket.server();
    let keys = [
        ("AWS_ACCESS_KEY_ID", &server.access_key),
        ("AWS_SECRET_ACCESS_KEY", &server.secret_key),
    ];
    release.create_secret("purge-writer", &keys);
    release.cluster.apply(&purge_job(&release).to_string());
    release.bucket.put("assets/a.txt", &[], b"new").await;
    release.kubectl(&[
        "create",
        "job",
        "--from=cronjob/purge-assets",
        "purge-release-42",
    ]);
    release.kubectl(&[
        "wait",
        "--for=condition=complete",
        "--timeout=60s",
        "job/purge-release-42",
    ]);
    for (name, pod, _) in release.pods() {
        let answer = client::get(pod, "/assets/a.txt").await;
        assert_eq!(answer.body, b"new", "{name}");
    }
}
