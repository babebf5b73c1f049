// SPDX-License-Identifier: Apache-2.0
//! Purges of a gateway: a number that the policy declares reaches it by istiod, and a line of the purge feed by the
//! bucket.

use serde_json::{Value, json};
use sluice_tests::client::Response;
use sluice_tests::eventually;
use sluice_tests::machine::tool::repository;
use sluice_tests::mesh::fleet::Fleet;
use sluice_tests::mesh::gateway::Gateway;
use sluice_tests::mesh::kustomize::changed_policy;
use std::time::{Duration, Instant};

const NAMESPACE: &str = "purges";
/// Bound on the time from a line of the feed to the new object.
const FEED_BOUND: Duration = Duration::from_secs(3);
/// Bound on the time from a change of a number to the new object.
const NUMBER_BOUND: Duration = Duration::from_secs(10);

fn version(response: &Response, path: &str) -> u64 {
    response.stamp(path).sequence
}

/// Waits until the gateway serves this version. Returns the time since `begun`.
async fn served(gateway: &Gateway, path: &str, wanted: u64, begun: Instant) -> Duration {
    eventually("the version", async || {
        version(&gateway.get(path).await, path) == wanted
    })
    .await;
    begun.elapsed()
}

/// Appends lines to the feed of a gateway that reads it every two seconds. No line names `other`.
async fn purge_by_feed(gateway: &Gateway, other: &str) {
    // In front of its first look at the feed, a worker validates. All have looked before the second reading.
    eventually("two readings", async || {
        let reads = "wasmcustom.sluice_purge_feed_reads";
        gateway.pod.statistic(reads).await >= 2
    })
    .await;
    let bucket = &gateway.bucket;
    for key in ["a", &other[1..]] {
        bucket.put_stamped(key, 0, 2_000).await;
    }
    gateway.hit(other).await;
    let mut feed = "sluice-purges/1 00005eed\nbase 0 0\n".to_owned();
    let mut times = Vec::new();
    for number in 1..=3 {
        assert_eq!(version(&gateway.hit("/a").await, "/a"), number - 1);
        bucket.put_stamped("a", number, 2_000).await;
        assert!(gateway.get("/a").await.is_hit());
        feed += &format!("{number} 2026-11-25T07:31:02Z url /a\n");
        let begun = Instant::now();
        bucket.put(".sluice/purges", &[], feed.as_bytes()).await;
        times.push(served(gateway, "/a", number, begun).await);
    }
    println!("purged by the feed after {times:?}");
    assert!(times.iter().all(|time| *time <= FEED_BOUND), "{times:?}");
}

/// The patch with a number that `mesh/README.md` shows.
fn documented_patch() -> String {
    let text = std::fs::read_to_string(repository().join("mesh/README.md")).unwrap();
    let command = "patch envoyfilter sluice-edge --type json -p '";
    let (_, patch) = text.split_once(command).unwrap();
    patch.split_once('\'').unwrap().0.to_owned()
}

/// Patches the policy and waits until the gateway serves this version. Returns the time that both took.
async fn patch(gateway: &Gateway, patch: &str, path: &str, wanted: u64) -> Duration {
    let begun = Instant::now();
    let cluster = gateway.mesh().cluster;
    cluster.patch(NAMESPACE, "envoyfilter/sluice-edge", patch);
    served(gateway, path, wanted, begun).await
}

/// Declares a number and takes it away again.
async fn purge_by_number(gateway: &Gateway) {
    let path = "/assets/a";
    gateway.bucket.put_stamped(&path[1..], 1, 2_000).await;
    gateway.hit(path).await;
    gateway.bucket.put_stamped(&path[1..], 2, 2_000).await;
    assert_eq!(version(&gateway.hit(path).await, path), 1);
    let documented = documented_patch();
    let purged = patch(gateway, &documented, path, 2).await;
    assert_eq!(version(&gateway.hit(path).await, path), 2);
    // The manifests have another policy now, so they are not applied by mistake.
    let apply = ["apply", "--server-side", "-f", "-"];
    let manifests = gateway.overlay.build();
    let refused = gateway.mesh().cluster.run(&apply, &manifests);
    let errors = String::from_utf8_lossy(&refused.stderr);
    let conflict = "conflict with \"kubectl-patch\"";
    assert!(errors.contains(conflict), "{errors}");
    // Without the number the former object is back.
    let operations: Value = serde_json::from_str(&documented).unwrap();
    let place = operations[0]["path"].as_str().unwrap();
    let remove = json!([{"op": "remove", "path": place}]).to_string();
    let restored = patch(gateway, &remove, path, 1).await;
    assert_eq!(gateway.fetches(&path[1..]), 2);
    println!("purged by a number after {purged:?}, restored after {restored:?}");
    assert!(
        purged.max(restored) < NUMBER_BOUND,
        "{purged:?}, {restored:?}"
    );
}

#[tokio::test]
async fn the_feed_and_a_number_purge_the_gateway_within_seconds() {
    let policy = changed_policy("base", |policy| {
        policy["purge"]["feed"] = json!({"every": "2s"});
    });
    let gateway = Gateway::builder(NAMESPACE).await;
    let gateway = gateway.with(|overlay| overlay.policy(&policy));
    let gateway = gateway.start().await;
    purge_by_feed(&gateway, "/b").await;
    purge_by_number(&gateway).await;
    assert!(gateway.get("/b").await.is_hit());
    assert_eq!(gateway.fetches("b"), 1, "the rest of the cache stays");
}

#[tokio::test]
async fn no_cache_answers_with_an_object_that_its_gateway_has_purged() {
    let fleet = Fleet::builder("purged-fleet").await.of(1, 2).start().await;
    let path = "/assets/a";
    fleet.bucket.put_stamped(&path[1..], 1, 2_000).await;
    fleet.hit(path).await;
    fleet.bucket.put_stamped(&path[1..], 2, 2_000).await;
    // The control.
    assert_eq!(version(&fleet.hit(path).await, path), 1);

    let documented = documented_patch();
    fleet.patch_gateways(&documented);
    eventually("the number at the gateway", async || {
        version(&fleet.get(path).await, path) == 2
    })
    .await;
    // The caches lack the number, so they ask the bucket.
    let asked = fleet.fetches(&path[1..]);
    for number in 1..=3 {
        let response = fleet.get(path).await;
        assert_eq!(version(&response, path), 2, "{response}");
        assert!(!response.is_hit(), "{response}");
        assert_eq!(fleet.fetches(&path[1..]), asked + number);
    }

    fleet.patch_caches(&documented);
    let response = fleet.hit(path).await;
    assert_eq!(version(&response, path), 2, "{response}");
}
