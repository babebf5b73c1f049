// SPDX-License-Identifier: Apache-2.0
//! A change of a number that the policy declares is a purge on every worker, without a call.

use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};

fn policy(number: u64) -> String {
    format!(
        "origin: {{kind: http}}\npurge: {{declared: [{{prefix: /assets/, number: {number}}}]}}\n"
    )
}

/// The sequence number of a hit.
async fn hit(edge: &Edge, path: &str) -> u64 {
    eventually("a hit", async || edge.get(path).await.is_hit()).await;
    edge.get(path).await.stamp(path).sequence
}

#[tokio::test]
async fn a_reload_with_another_number_purges_and_with_the_former_one_restores() {
    let origin = Origin::start().ready().await;
    for path in ["/assets/a", "/b"] {
        origin.on(path, Reply::ok(2_000).max_age(3_600));
    }
    let edge = Edge::http(&origin).workers(2).policy(&policy(41));
    let edge = edge.start().await;
    let (first, other) = (hit(&edge, "/assets/a").await, hit(&edge, "/b").await);
    edge.reload_policy(&policy(42));
    eventually("a purge", async || {
        edge.get("/assets/a").await.stamp("/assets/a").sequence > first
    })
    .await;
    assert!(hit(&edge, "/assets/a").await > first);
    edge.reload_policy(&policy(41));
    eventually("the former response", async || {
        edge.get("/assets/a").await.stamp("/assets/a").sequence == first
    })
    .await;
    assert_eq!(
        hit(&edge, "/b").await,
        other,
        "no number is declared for it"
    );
    assert_eq!((origin.count("/assets/a"), origin.count("/b")), (2, 1));
}
