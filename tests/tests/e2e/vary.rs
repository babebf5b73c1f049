// SPDX-License-Identifier: Apache-2.0
//! `Vary` neither keeps a bucket's objects from the store, nor lets one visitor's variant out to another.

use sluice_tests::crowd::Crowd;
use sluice_tests::edge::Edge;
use sluice_tests::gate::Gate;
use sluice_tests::matrix::on_each;
use sluice_tests::minio::Bucket;
use sluice_tests::origin::{Origin, Reply};

#[tokio::test]
async fn the_vary_of_minio_does_not_prevent_storing() {
    on_each(&[1], async |cell| {
        let bucket = Bucket::new().await;
        bucket.put_stamped("a", 1, 1000).await;
        let plain = bucket.get("a").await;
        assert!(plain.header("vary").contains("Origin"), "{plain}");
        let edge = Edge::bucket(&bucket).cell(cell).start().await;
        let senders: [&[(&str, &str)]; 4] = [
            &[],
            &[("origin", "http://one.test")],
            &[("origin", "http://two.test"), ("accept-encoding", "gzip")],
            &[("accept-encoding", "br, zstd")],
        ];
        let before = bucket.requests().total();
        for headers in senders {
            let response = edge.send("GET", "/a", headers).await;
            assert_eq!(response.status, 200, "{cell}: {response}");
            let _ = response.stamp("/a");
        }
        assert!(edge.get("/a").await.is_hit(), "{cell}");
        assert_eq!(bucket.requests().total() - before, 1, "{cell}");
    })
    .await;
}

#[tokio::test]
async fn a_response_with_vary_is_everyones_own() {
    on_each(&[1], async |cell| {
        let origin = Origin::start().ready().await;
        let edge = Edge::http(&origin).cell(cell).start().await;
        for (n, vary) in ["accept-language", "*", "Accept-Encoding, X-Other"]
            .into_iter()
            .enumerate()
        {
            let path = format!("/a{n}");
            origin.on(&path, Reply::ok(1000).max_age(60).header("vary", vary));
            let mut seen = Vec::new();
            for language in ["fr", "de", "fr", "de"] {
                let headers = [("accept-language", language), ("x-other", language)];
                let response = edge.send("GET", &path, &headers).await;
                assert!(!response.is_hit(), "{cell}: {response}");
                assert_eq!(response.header("vary"), vary, "{cell}");
                seen.push(response.stamp(&path).sequence);
            }
            seen.dedup();
            assert_eq!(seen.len(), 4, "{vary} on {cell}");
            let asked = origin.requests().of(&path);
            let asked = asked
                .iter()
                .map(|request| request.headers.get("accept-language"));
            assert!(asked.eq([Some("fr"), Some("de"), Some("fr"), Some("de")]));
        }
    })
    .await;
}

#[tokio::test]
async fn requests_for_variants_do_not_wait_for_each_other() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let reply = Reply::ok(1000).max_age(60).header("vary", "cookie");
    origin.on_each("/a", [reply.clone(), reply.hold(&gate)]);
    let edge = Edge::http(&origin).start().await;
    assert_eq!(edge.get("/a").await.status, 200);
    let flight = Crowd::connect(edge.address(), 20).await.fire("/a");
    // Known to be uncacheable now, on every worker that has asked once.
    gate.wait_reached(19).await;
    gate.open();
    flight.land().await.all(200);
}

#[tokio::test]
async fn a_policy_may_declare_a_vary_irrelevant() {
    on_each(&[1], async |cell| {
        let origin = Origin::start().ready().await;
        let vary = "Accept-Language, Origin";
        origin.on("/a", Reply::ok(1000).max_age(60).header("vary", vary));
        let policy = "origin: {kind: http}\nresponse: {ignore_vary: [accept-language, origin]}\n";
        let edge = Edge::http(&origin).cell(cell).policy(policy).start().await;
        for language in ["fr", "de", "fr"] {
            let response = edge
                .send("GET", "/a", &[("accept-language", language)])
                .await;
            let _ = response.stamp("/a");
        }
        assert_eq!(origin.count("/a"), 1, "{cell}");
    })
    .await;
}
