// SPDX-License-Identifier: Apache-2.0
//! The large objects of a private bucket are sliced without a further setting of the bucket.

use super::world::{Asked, KNOWN, OBJECT, SLICE, SLICES};
use sluice_tests::bucket::Bucket;
use sluice_tests::client::crowd::stampede;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::http::body;
use test_case::test_case;

#[test_case("large.iso"; "of a known path")]
#[test_case("large"; "of an unknown path")]
#[tokio::test]
async fn a_crowd_of_a_private_object_fetches_each_slice_once(key: &str) {
    let bucket = Bucket::new().await;
    bucket.put_stamped(key, 1, OBJECT).await;
    let edge = Edge::bucket(&bucket).start().await;
    let path = format!("/{key}");
    for response in stampede(edge.address(), 6, &path).await.all(200) {
        assert_eq!(response.stamp(&path).sequence, 1);
    }
    let asked = Asked::of(bucket.requests(), &bucket.target(key));
    assert!(asked.heads <= 1 && asked.wholes <= 1, "{asked:?}");
    asked.assert_each_slice_once();
}

#[tokio::test]
async fn a_far_range_of_a_private_object_costs_two_requests_and_then_nothing() {
    let bucket = Bucket::new().await;
    bucket.put_stamped("large.iso", 1, OBJECT).await;
    let edge = Edge::bucket(&bucket).start().await;
    let first = 20 * SLICE + 7;
    for _ in 0..2 {
        let range = format!("bytes={first}-{}", first + 99);
        let response = edge.send("GET", KNOWN, &[("range", &range)]).await;
        assert_eq!(response.status, 206, "{response}");
        assert_eq!(
            response.body,
            body::part(KNOWN, 1, OBJECT, first..first + 100)
        );
        assert_eq!(bucket.count("large.iso"), 2);
    }
}

#[tokio::test]
async fn a_private_object_that_is_replaced_is_never_mixed() {
    let bucket = Bucket::new().await;
    bucket.put_stamped("large.iso", 1, OBJECT).await;
    let edge = Edge::bucket(&bucket).start().await;
    let range = [("range", "bytes=0-9")];
    edge.send("GET", KNOWN, &range).await;
    bucket.put_stamped("large.iso", 2, OBJECT).await;
    let mut client = Client::connect(edge.address()).await;
    let first = client.try_exchange(request("GET", KNOWN, &[])).await;
    if let Ok(response) = first {
        assert_eq!(response.stamp(KNOWN).sequence, 2);
    }
    for _ in 0..2 {
        assert_eq!(edge.get(KNOWN).await.stamp(KNOWN).sequence, 2);
    }
    let asked = Asked::of(bucket.requests(), &bucket.target("large.iso"));
    assert!(asked.slices.len() == SLICES, "{asked:?}");
}
