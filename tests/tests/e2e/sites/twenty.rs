// SPDX-License-Identifier: Apache-2.0
//! Twenty sites of one file: each has its own objects, credentials, certificate, purges, counters and log lines. The
//! tests have no control without the filter, because Envoy alone has one origin.

use super::world::World;
use serde_json::Value;
use sluice_tests::client::request;
use sluice_tests::edge::Edge;
use sluice_tests::edge::tls::{connect_trusting_for, exchange};
use sluice_tests::eventually;

/// Sends a purge with the token of the site with this name.
async fn purge(world: &World, site: &str, order: &str) -> u16 {
    let site = world.table.sites.iter().find(|other| other.name == site);
    let authorization = format!("Bearer {}", site.unwrap().token());
    let headers = [("authorization", authorization.as_str())];
    world
        .purger
        .send("POST", "/purge", &headers, order)
        .await
        .status
}

/// Each site's name, server name for TLS, host, and path of its object `o`.
fn places(world: &World) -> Vec<(String, Option<String>, String, String)> {
    let of = |site: &sluice_fake::sites::Site| {
        let host = site.hosts[0].clone();
        let secure = site.certificate.is_some().then(|| host.clone());
        (site.name.clone(), secure, host, format!("{}/o", site.path))
    };
    world.table.sites.iter().map(of).collect()
}

async fn assert_own_objects(world: &World, edge: &Edge) {
    for (name, secure, host, path) in places(world) {
        let answer = world.ask(edge, secure.as_deref(), &host, &path).await;
        assert_eq!(answer, (200, name), "{host}{path}");
    }
}

#[tokio::test]
async fn each_serves_its_own_object_and_what_is_no_ones_is_refused() {
    let world = World::twenty().await;
    let edge = world.start().await;
    for _ in 0..2 {
        assert_own_objects(&world, &edge).await;
    }
    for (server_name, host, path, expected) in [
        (None, "unknown.test", "/o", 421),
        (None, "b0.test.b1.test", "/o", 421),
        (None, "deep.test", "/o", 404),
        (None, "a.deep.test", "/zz/o", 404),
        (None, "a.deep.test", "/z/o", 200),
        (Some("s0.test"), "s1.test", "/o", 421),
        (Some("s1.test"), "s0.test", "/o", 421),
        (Some("unknown.test"), "s0.test", "/o", 421),
        (Some("s0.test"), "b0.test", "/o", 421),
        (Some("s1.test"), "s1.test", "/o", 200),
    ] {
        let (status, _) = world.ask(&edge, server_name, host, path).await;
        assert_eq!(status, expected, "{server_name:?} {host}{path}");
    }
    // The first site redirects to HTTPS and sets HSTS. The second site has HTTPS too, but does not set HSTS.
    let (status, _) = world.ask(&edge, None, "s0.test", "/o").await;
    assert_eq!(status, 301);
    for (host, expected) in [("s0.test", "max-age=31536000"), ("s1.test", "")] {
        let stream = connect_trusting_for(world.secure_address(), host).await;
        let asked = request("GET", "/o", &[("host", host)]);
        let (head, _) = exchange(&mut stream.unwrap(), &asked).await.unwrap();
        let told = head
            .headers
            .get("strict-transport-security")
            .unwrap_or_default();
        assert_eq!(told, expected, "{host}");
    }
}

#[tokio::test]
async fn the_credentials_of_one_site_open_no_bucket_of_another() {
    let mut world = World::empty();
    world.add_bucket("own", &["own.test"], "").await;
    world.add_thief("thief", &["thief.test"]).await;
    let edge = world.start().await;
    assert_eq!(
        world.ask(&edge, None, "own.test", "/o").await,
        (200, "own".to_owned())
    );
    let (status, body) = world.ask(&edge, None, "thief.test", "/o").await;
    assert!(
        matches!(status, 403 | 502) && body != "thief",
        "{status} {body}"
    );
}

#[tokio::test]
async fn a_token_purges_its_own_site_and_no_other() {
    let world = World::twenty().await;
    let edge = world.start().await;
    for _ in 0..2 {
        assert_own_objects(&world, &edge).await;
    }
    let asked = |world: &World| {
        let buckets = world
            .buckets
            .iter()
            .map(|bucket| bucket.requests().all().len());
        let origins = world
            .origins
            .iter()
            .map(|origin| origin.requests().all().len());
        buckets.chain(origins).collect::<Vec<_>>()
    };
    let before = asked(&world);
    for (site, order) in [
        ("b0", r#"{"url": "http://b1.test/o"}"#),
        ("h0", r#"{"prefix": "http://h1.test/"}"#),
        ("root", r#"{"url": "http://paths.test/x/o"}"#),
        ("below", r#"{"url": "http://paths.test/o"}"#),
        ("h0", r#"{"site": "h1", "everything": true}"#),
    ] {
        assert_eq!(purge(&world, site, order).await, 400, "{site} {order}");
    }
    for site in ["b0", "root"] {
        assert_eq!(purge(&world, site, r#"{"everything": true}"#).await, 200);
    }
    assert_own_objects(&world, &edge).await;
    let after = asked(&world);
    // The first bucket has changed, and the seventh HTTP origin.
    let changed = before.iter().zip(&after).enumerate();
    let changed: Vec<_> = changed
        .filter(|(_, (one, other))| one != other)
        .map(|(index, _)| index)
        .collect();
    assert_eq!(changed, [0, world.buckets.len() + 6]);
}

/// Upper bound on the number of series of an edge with twenty sites.
const MOST_SERIES: usize = 3_000;

#[tokio::test]
async fn the_counters_and_the_access_log_name_the_site() {
    let world = World::twenty().await;
    let edge = world.start().await;
    assert_own_objects(&world, &edge).await;
    eventually("the counters of all sites", async || {
        let document = edge.metrics_document().await;
        places(&world).iter().all(|(name, ..)| {
            ["sluice_origin_requests_total", "sluice_cache_objects"]
                .map(|metric| format!("{metric}{{site=\"{name}\"}} 1"))
                .iter()
                .all(|series| document.lines().any(|line| line == series))
        })
    })
    .await;
    let document = edge.metrics_document().await;
    let series = document.lines().filter(|line| !line.starts_with('#'));
    let series = series.count();
    assert!(series <= MOST_SERIES, "{series}");
    let lines = || {
        let log = edge.log();
        let lines = log.lines().filter(|line| line.starts_with('{'));
        lines
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .collect::<Vec<_>>()
    };
    eventually("a line of each site", async || {
        let lines = lines();
        places(&world).iter().all(|(name, _, host, path)| {
            lines.iter().any(|line| {
                line["site"] == **name && line["host"] == **host && line["path"] == **path
            })
        })
    })
    .await;
}
