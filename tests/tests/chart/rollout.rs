// SPDX-License-Identifier: Apache-2.0
//! A release in a whole cluster: the real controllers, pods that run the image, and clients behind a load balancer.

use crate::release::{Release, both, failures_during, is_in_cluster, policy, until};
use serde_json::json;
use sluice_tests::client;
use std::time::Instant;

/// One story, because a cluster takes ten seconds to start.
#[tokio::test]
async fn a_release_is_installed_reloads_a_changed_site_refuses_a_wrong_one_and_is_rolled_out_under_load()
 {
    if !is_in_cluster() {
        return;
    }
    let started = Instant::now();
    let release = Release::install(&json!({})).await;
    println!("installed after {:?}", started.elapsed());
    let balancer = release.balancer().await;
    assert_eq!(balancer.endpoints().len(), 2);
    let targets = release.objects(20).await;
    let pods = release.pods();

    // A hit, and `helm test`.
    for (_, pod, _) in &pods {
        let first = client::get(*pod, "/0.bin").await;
        assert!(first.status == 200 && !first.is_hit(), "{first}");
        let hit = client::until_hit(*pod, "/0.bin").await;
        assert_eq!(hit.header("x-edition"), "first");
    }
    let tested = release.test();
    assert!(tested.status.success(), "{}", both(&tested));

    // The check refuses a wrong site, with its findings.
    let wrong = json!({"policies": {"www.yaml": {"cache": {"tll": "1h"}}}});
    let refused = release.helm("upgrade", &wrong);
    let says = both(&refused);
    assert!(!refused.status.success() && says.contains("tll"), "{says}");
    assert_eq!(release.pods(), pods);

    // A changed one is reloaded without a restart.
    let changed = release.helm("upgrade", &json!({"policies": policy("second")}));
    assert!(changed.status.success(), "{}", both(&changed));
    for (_, pod, _) in &pods {
        until(*pod, "/0.bin", |response| {
            response.header("x-edition") == "second"
        })
        .await;
    }
    assert_eq!(release.pods(), pods);

    let failures = failures_during("a rollout", balancer.address(), &targets, async || {
        release.roll_out("deployment").await;
    });
    assert_eq!(failures.await, Vec::<String>::new());
    println!("{:?} in all", started.elapsed());
}
