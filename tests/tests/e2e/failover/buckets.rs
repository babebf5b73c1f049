// SPDX-License-Identifier: Apache-2.0
//! Two real buckets on different servers, each with different credentials. A large object is served from one version.

use sluice_tests::bucket::Bucket;
use sluice_tests::bucket::software::Software;
use sluice_tests::edge::Edge;

#[tokio::test]
async fn a_bucket_of_another_server_answers_with_credentials_of_its_own() {
    let (first, second) = (Bucket::new().await, Software::VersityGw.bucket().await);
    for bucket in [&first, &second] {
        bucket.put_stamped("dir/a b+c", 1, 1_000).await;
    }
    second.put_stamped("only-second", 1, 1_000).await;
    let edge = Edge::bucket(&first)
        .env("SLUICE_FAILOVER_ORIGIN", format!("s3://{}", second.name()))
        .env("SLUICE_FAILOVER_ENDPOINT", second.endpoint())
        .env("SLUICE_FAILOVER_ACCESS_KEY_ID", &second.server().access_key)
        .env(
            "SLUICE_FAILOVER_SECRET_ACCESS_KEY",
            &second.server().secret_key,
        )
        .env("SLUICE_FAILOVER_AFTER_SILENCE", "200ms")
        .start()
        .await;
    assert_eq!(edge.get("/only-second").await.status, 404);
    let _gate = first.proxy().hold(&first.target("dir/a%20b%2Bc"));
    let response = edge.get("/dir/a%20b+c").await;
    let _ = response.stamp("/dir/a b+c");
    assert!(
        response.cache_status().ends_with("detail=failover"),
        "{response}"
    );
    assert_eq!(
        second.requests().total(),
        1,
        "{}",
        second.requests().summary()
    );
}
