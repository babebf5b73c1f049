// SPDX-License-Identifier: Apache-2.0
//! Each question of an operator at night is answered by one command.

use super::shop::Shop;
use serde_json::Value;
use sluice_tests::client::crowd::Crowd;
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;

/// The element of a list whose field has this value.
fn with<'a>(list: &'a Value, field: &str, value: &str) -> &'a Value {
    let mut found = list.as_array().unwrap().iter();
    let found = found.find(|element| element[field] == value);
    found.unwrap_or_else(|| panic!("{field}={value}: {list:#}"))
}

/// Has `/a` of the site `assets` stored. Returns its explanation.
async fn store(shop: &Shop) -> Value {
    assert_eq!(shop.get("assets", "/a").await, 200);
    let mut told = Value::Null;
    eventually("a stored response", async || {
        told = shop
            .edge
            .command(&["explain", "http://assets.test/a", "--json"])
            .await
            .json();
        told["next"] == "hit" || told["next"] == "hit_in_memory"
    })
    .await;
    told
}

#[tokio::test]
async fn which_site_has_few_hits() {
    let shop = Shop::start(|edge| edge).await;
    let told = shop
        .while_busy(shop.edge.command(&["top", "--once", "--json"]))
        .await;
    let told = told.json();
    let ratio = |site: &str| {
        let site = with(&told["sites"], "site", site);
        site["hits"].as_f64().unwrap() / site["requests"].as_f64().unwrap()
    };
    assert!(ratio("assets") > 0.5 && ratio("shop") < 0.1, "{told:#}");
}

#[tokio::test]
async fn which_urls_have_the_most_requests_and_which_the_most_misses() {
    let shop = Shop::start(|edge| edge).await;
    let first = async |sorting: &str| {
        let arguments = ["top", "--once", "--sort", sorting, "--json"];
        let told = shop.while_busy(shop.edge.command(&arguments)).await.json();
        told["urls"][0].clone()
    };
    let (requests, misses) = (first("requests").await, first("misses").await);
    assert_eq!(
        (&requests["site"], &requests["path"]),
        (&"assets".into(), &"/a".into())
    );
    // The query does not appear.
    assert_eq!(
        (&misses["site"], &misses["path"]),
        (&"shop".into(), &"/cart".into())
    );
}

#[tokio::test]
async fn why_is_a_url_not_stored() {
    let shop = Shop::start(|edge| edge).await;
    assert_eq!(shop.get("shop", "/cart").await, 200);
    let told = shop
        .edge
        .command(&["explain", "http://shop.test/cart"])
        .await;
    assert!(told.text.contains("stored    nothing"), "{told:?}");
    assert!(told.text.contains("hit-for-miss: set-cookie"), "{told:?}");
    let requests = shop.shop.requests().total();
    let told = shop
        .edge
        .command(&["explain", "http://shop.test/other", "--online"])
        .await;
    assert!(told.text.contains("not stored"), "{told:?}");
    assert!(told.text.contains("cache.set_cookie"), "{told:?}");
    assert!(!told.text.contains("id=7"), "{told:?}");
    assert_eq!(shop.shop.requests().total(), requests + 1);
}

#[tokio::test]
async fn what_is_being_fetched_and_how_many_requests_wait() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/big", Reply::ok(100_000).hold_after(1_000, &gate));
    let edge = Edge::http(&origin).start().await;
    let crowd = Crowd::connect(edge.address(), 5).await.fire("/big");
    edge.wait_for_value("sluice_parked_now", 4).await;
    eventually(
        "the length and the waiting requests of the flight",
        async || {
            let told = edge.command(&["flights", "--json"]).await.json();
            let flight = with(&told["flights"], "key", "/big");
            (&flight["waiting"], &flight["length"]) == (&4.into(), &100_000.into())
        },
    )
    .await;
    gate.open();
    crowd.land().await.all(200);
    eventually("the end of the flight", async || {
        let told = edge.command(&["flights"]).await;
        told.text == "nothing is being fetched\n"
    })
    .await;
}

#[tokio::test]
async fn which_origin_is_slow() {
    let shop = Shop::start(|edge| edge).await;
    for number in 0..4 {
        shop.get("assets", &format!("/{number}")).await;
        shop.get("shop", &format!("/{number}")).await;
    }
    // Envoy adds new times to its histograms every few seconds.
    eventually("a shorter time of the faster origin", async || {
        let told = shop.edge.command(&["origins", "--json"]).await.json();
        let median = |site: &str| with(&told["origins"], "site", site)["first_byte_p50"].as_f64();
        median("assets")
            .zip(median("shop"))
            .is_some_and(|(fast, slow)| fast < slow)
    })
    .await;
}

#[tokio::test]
async fn which_origin_fails_and_with_which_error() {
    let shop = Shop::start(|edge| edge).await;
    shop.shop.on("/down", Reply::status(503));
    assert_eq!(shop.get("shop", "/down").await, 503);
    let told = shop.edge.command(&["origins", "--json"]).await.json();
    let error = &with(&told["origins"], "site", "shop")["last_error"];
    assert_eq!(
        (&error["status"], &error["path"]),
        (&503.into(), &"/down".into())
    );
}

#[tokio::test]
async fn what_is_stored_of_a_url_and_what_a_get_would_get() {
    let shop = Shop::start(|edge| edge).await;
    let told = store(&shop).await;
    let stored = &told["stored"]["stored"][0];
    assert_eq!(
        (&stored["status"], &stored["body_bytes"]),
        (&200.into(), &10_000.into())
    );
    assert!(
        stored["fresh_until_ms"].as_u64() > stored["stored_at_ms"].as_u64(),
        "{told:#}"
    );
    let told = shop
        .edge
        .command(&["explain", "http://assets.test/other", "--json"])
        .await;
    assert_eq!(told.json()["next"], "miss");
}

#[tokio::test]
async fn is_the_cache_full_and_whose_objects_are_evicted() {
    let shop = Shop::start(|edge| {
        edge.env("SLUICE_CACHE_MAX_BYTES", "2MiB")
            .env("SLUICE_CACHE_MAX_OBJECT_BYTES", "20KiB")
            .metrics()
    })
    .await;
    // The cache has room for many objects, because Envoy itself evicts from a small one, in front of the keeper.
    let evicted = "sluice_cache_evictions_total{reason=\"limit\",site=\"assets\"} 0";
    let mut number = 0;
    eventually("an eviction", async || {
        number += 1;
        shop.get("assets", &format!("/{number}")).await;
        !shop.edge.metrics_document().await.contains(evicted)
    })
    .await;
    let told = shop.edge.command(&["top", "--once", "--json"]).await.json();
    let totals = &told["edge"]["totals"];
    assert_eq!(totals["cache_limit_bytes"], 2 << 20);
    let evictions = |site: &str| with(&totals["sites"], "site", site)["cache_evictions"].as_u64();
    assert!(
        evictions("assets") > Some(0) && evictions("shop") == Some(0),
        "{told:#}"
    );
}

#[tokio::test]
async fn has_a_purge_arrived() {
    let shop = Shop::start(|edge| edge).await;
    shop.get("assets", "/a").await;
    let told = shop
        .edge
        .command(&["purge", "--url", "http://assets.test/a"])
        .await;
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.text.contains("confirmed by"), "{told:?}");
    let told = shop
        .edge
        .command(&["explain", "http://assets.test/a", "--json"])
        .await
        .json();
    assert_eq!(told["next"], "miss", "{told:#}");
    // The log has a line about the caller.
    shop.edge.wait_for_log("control socket").await;
    let told = shop.edge.command(&["purge", "--site", "nowhere"]).await;
    assert!(
        told.code == Some(1) && told.errors.contains("nowhere"),
        "{told:?}"
    );
}

#[tokio::test]
async fn what_did_the_last_reload_do() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin)
        .policy("origin: {kind: http}\n")
        .start()
        .await;
    edge.reload_policy("origin: {kind: http}\ncache: {tll: 1s}\n");
    edge.wait_for_log("reload refused").await;
    let told = edge.command(&["top", "--once"]).await;
    let line = told
        .text
        .lines()
        .find(|line| line.starts_with("last reload at"));
    assert!(
        line.is_some_and(|line| line.contains("refused") && line.contains("tll")),
        "{told:?}"
    );
}

#[tokio::test]
async fn how_many_bytes_does_the_cache_save() {
    let shop = Shop::start(|edge| edge).await;
    for _ in 0..10 {
        shop.get("assets", "/a").await;
    }
    let mut bytes = (Value::Null, Value::Null);
    // The origin's bytes are counted at the end of its stream, which may be behind the last hit.
    eventually("bytes of the origin", async || {
        let told = shop.edge.command(&["top", "--once", "--json"]).await.json();
        let assets = with(&told["edge"]["totals"]["sites"], "site", "assets");
        bytes = (assets["bytes_sent"].clone(), assets["origin_bytes"].clone());
        bytes.1 != Value::Null
    })
    .await;
    assert_eq!(bytes, (100_000.0.into(), 10_000.0.into()));
}
