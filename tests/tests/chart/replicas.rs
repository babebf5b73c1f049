// SPDX-License-Identifier: Apache-2.0
//! Replicas in a whole cluster: they come, they go, they are killed, they keep their volumes, and all get a purge.

use crate::release::{NAMESPACE, Release, both, failures_during, is_in_cluster, load};
use serde_json::{Value, json};
use sluice_tests::bucket::REGION;
use sluice_tests::client::{self, Client, request};
use sluice_tests::eventually;
use sluice_tests::kubernetes::balancer::Balancer;
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
    let upgrade = async |values: &Value, replicas: usize| {
        let upgraded = release.helm("upgrade", values);
        assert!(upgraded.status.success(), "{}", both(&upgraded));
        let all = || balancer.endpoints().len() == replicas;
        eventually("the endpoints", async || all()).await;
        release.settle(replicas).await;
    };
    let failures = failures_during("scaling", balancer.address(), &targets, async || {
        for replicas in [4, 1, 3] {
            upgrade(&json!({"replicaCount": replicas}), replicas).await;
        }
    });
    assert_eq!(failures.await, Vec::<String>::new());
    kill_one(&release, &balancer, &targets).await;

    // Control: replicas that end at once, while the balancer still sends requests to them.
    upgrade(&json!({"replicaCount": 3, "minDrainSeconds": 0}), 3).await;
    let control = "a rollout without a least drain time";
    let failures = failures_during(control, balancer.address(), &targets, async || {
        release.roll_out("deployment").await;
    });
    assert!(!failures.await.is_empty());
}

/// Kills a replica that has a request in its hands. That request fails, and no request that begins later.
async fn kill_one(release: &Release, balancer: &Balancer, targets: &[String]) {
    release.bucket.put_stamped("held.bin", 1, 2_000).await;
    let held = release.bucket.target("held.bin");
    let gate = release.bucket.proxy().hold(&held);
    let (name, address, _) = release.pods().remove(0);
    let mut held = Client::connect(address).await;
    held.send(request("GET", "/held.bin", &[])).await.unwrap();
    gate.wait_reached(1).await;
    let load = load(balancer.address(), targets, false);
    load.more(100).await;
    release.kubelet.kill(NAMESPACE, &name).await;
    let killed = Instant::now();
    let lost = held.response().await;
    assert!(lost.is_err(), "{lost:?}");
    gate.open();
    let runs_again = || {
        let pods = release.pods();
        let is_again = |(pod, _, restarts): &(String, _, _)| *pod == name && *restarts == 1;
        pods.iter().any(is_again) && balancer.endpoints().contains(&address)
    };
    eventually("the container runs again", async || runs_again()).await;
    load.more(500).await;
    let seen = load.since(killed);
    println!("a killed replica: {seen}");
    assert_eq!(seen.failures, Vec::<String>::new());
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

    let failures = failures_during("with volumes", balancer.address(), &targets, async || {
        release.roll_out("statefulset").await;
    });
    assert_eq!(failures.await, Vec::<String>::new());
    everywhere().await;
    assert_eq!(fetched(), 2 * targets.len());

    purge(&release, &everywhere).await;
}

/// Purges an object that all replicas have, as the documents say.
async fn purge(release: &Release, everywhere: &impl AsyncFn()) {
    create_feed(release);
    let with_feed = release.helm("upgrade", &json!({"purge": {"feed": {"every": "2s"}}}));
    assert!(with_feed.status.success(), "{}", both(&with_feed));
    everywhere().await;
    let server = release.bucket.server();
    let keys = [
        ("AWS_ACCESS_KEY_ID", &server.access_key),
        ("AWS_SECRET_ACCESS_KEY", &server.secret_key),
    ];
    release.create_secret("purge-writer", &keys);
    release.cluster.apply(&purge_job(release).to_string());
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
