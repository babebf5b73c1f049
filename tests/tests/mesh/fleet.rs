// SPDX-License-Identifier: Apache-2.0
//! Gateways and caches behave as one cache: an object is fetched once for all of them.

use serde_json::{Value, json};
use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::load::{Load, Plan};
use sluice_tests::client::{Client, request, send};
use sluice_tests::edge::tls::{connect_trusting, exchange};
use sluice_tests::eventually;
use sluice_tests::http::body;
use sluice_tests::mesh::fleet::{Fleet, owner_of};
use std::collections::BTreeMap;

/// Owner of each target: the name of a cache.
pub type Owners = BTreeMap<String, String>;

/// Counts the targets that each cache owns.
fn spread(owners: &Owners) -> BTreeMap<&str, usize> {
    let mut spread = BTreeMap::new();
    for owner in owners.values() {
        *spread.entry(owner.as_str()).or_default() += 1;
    }
    spread
}

/// Targets whose owner differs between `before` and `after`.
pub fn moved<'a>(before: &'a Owners, after: &Owners) -> Vec<&'a str> {
    let moved = before
        .iter()
        .filter(|(target, owner)| after[*target] != **owner);
    moved.map(|(target, _)| target.as_str()).collect()
}

/// Targets of `count` objects.
pub fn targets(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("/object-{number}"))
        .collect()
}

/// Puts an object of `size` bytes into the bucket for each target.
pub async fn fill(fleet: &Fleet, targets: &[String], size: usize) {
    for target in targets {
        fleet.bucket.put_stamped(&target[1..], 1, size).await;
    }
}

#[tokio::test]
async fn a_thousand_clients_of_two_gateways_make_one_request_for_each_of_fifty_objects() {
    const CLIENTS: usize = 1_000;
    let fleet = Fleet::builder("fleet").await.start().await;
    let targets = targets(50);
    fill(&fleet, &targets, 5_000).await;
    let mut flights = Vec::new();
    for gateway in 0..2 {
        let crowd = Crowd::connect(fleet.http(gateway), CLIENTS / 2).await;
        flights
            .push(crowd.fire_each(|client| request("GET", &targets[client % targets.len()], &[])));
    }
    let mut whole = 0;
    for flight in flights {
        let outcomes = flight.land().await;
        for response in outcomes.all(200) {
            let is = |target: &&String| body::check(target, &response.body).is_ok();
            assert!(targets.iter().any(|target| is(&target)), "{response}");
            whole += 1;
        }
    }
    assert_eq!(whole, CLIENTS);
    assert_eq!(fleet.all_fetches(), targets.len());

    // Both gateways know the same owners. Each cache has only the objects that it owns, and so has room for more.
    let owners = fleet.owners(0, &targets).await;
    assert_eq!(owners, fleet.owners(1, &targets).await);
    let spread = spread(&owners);
    println!("spread of {} objects: {spread:?}", targets.len());
    for cache in &fleet.caches {
        let fetched = cache.statistic("wasmcustom.sluice_origin_fetches").await;
        assert_eq!(fetched, spread[cache.name()] as u64, "{}", cache.name());
    }
    spellings_have_one_owner(&fleet).await;
    answers_are_the_owners(&fleet).await;
    nobody_forges_an_owner(&fleet).await;
    caches_answer_gateways_only(&fleet).await;
}

/// Every spelling of a path is sent to the same cache, which has one entry for all of them.
async fn spellings_have_one_owner(fleet: &Fleet) {
    fleet.bucket.put_stamped("folder/a~b.css", 1, 2_000).await;
    let first = fleet.hit("/folder/a~b.css").await;
    for spelling in [
        "/folder/a~b.css?version=2",
        "/folder/%61~b.css",
        "/folder/a%7Eb.css",
        "/folder/a%7eb.css",
        "//folder/./a~b.css",
        "/other/../folder/a~b.css",
    ] {
        for gateway in 0..2 {
            let answer = send(fleet.http(gateway), "GET", spelling, &[]).await;
            assert!(answer.is_hit(), "{spelling}: {answer}");
            assert_eq!(owner_of(&answer), owner_of(&first), "{spelling}");
        }
    }
    assert_eq!(fleet.fetches("folder/a~b.css"), 1);
    for path in ["/a%00b", "/a%ffb", "/folder/%2e%2e%2f../secret"] {
        let refused = fleet.get(path).await;
        assert_eq!(refused.status, 400, "{path}: {refused}");
        assert!(
            refused
                .headers
                .get("x-test-cache")
                .is_some_and(|by| by.starts_with("gateway"))
        );
    }
}

/// HEAD, ranges and conditions are answered as by one cache, and the response has one `Cache-Status`.
async fn answers_are_the_owners(fleet: &Fleet) {
    fleet.bucket.put_stamped("whole.bin", 1, 20_000).await;
    let miss = fleet.get("/whole.bin").await;
    let whole = fleet.hit("/whole.bin").await;
    for (answer, says) in [(&miss, "fwd=uri-miss"), (&whole, "hit")] {
        let members: Vec<_> = answer.headers.all("cache-status").collect();
        assert_eq!(members.len(), 1, "{answer}");
        assert!(!members[0].contains(','), "{answer}");
        assert!(members[0].contains(says), "{answer}");
        for prefix in ["x-sluice-", "x-envoy-", "x-amz-"] {
            assert!(!answer.headers.any_with_prefix(prefix), "{answer}");
        }
        assert_eq!(answer.header("server"), "sluice");
    }
    let gateway = fleet.http(1);
    let etag = whole.header("etag");
    let head = send(gateway, "HEAD", "/whole.bin", &[]).await;
    assert_eq!((head.status, head.header("content-length")), (200, "20000"));
    assert!(head.is_hit(), "{head}");
    let part = send(gateway, "GET", "/whole.bin", &[("range", "bytes=10-19")]).await;
    assert_eq!((part.status, part.body), (206, whole.body[10..20].to_vec()));
    let same = send(gateway, "GET", "/whole.bin", &[("if-none-match", etag)]).await;
    assert_eq!((same.status, same.body.len()), (304, 0));
    let missing = fleet.get("/missing").await;
    assert_eq!(missing.status, 404, "{missing}");
    assert_eq!(
        fleet.fetches("whole.bin"),
        1,
        "{}",
        fleet.bucket.requests().summary()
    );
}

/// A client cannot forge the headers by which the fleet selects an owner.
async fn nobody_forges_an_owner(fleet: &Fleet) {
    let honest = fleet.get("/whole.bin").await;
    for number in 0..10 {
        let key = format!("another-{number}");
        let forged = [
            ("x-sluice-key", key.as_str()),
            ("x-sluice-link", "1"),
            ("x-sluice-proof", "1"),
        ];
        let answer = send(fleet.http(0), "GET", "/whole.bin", &forged).await;
        assert_eq!(owner_of(&answer), owner_of(&honest), "{answer}");
        assert!(answer.is_hit(), "{answer}");
    }
    // A `CDN-Loop` that names this fleet is believed, and affects only the request that has it.
    let been_here = [("cdn-loop", "other, fleet")];
    let refused = send(fleet.http(0), "GET", "/whole.bin", &been_here).await;
    assert_eq!(refused.status, 508, "{refused}");
    let elsewhere = [("cdn-loop", "other, fleet-of-others; x=1")];
    let served = send(fleet.http(0), "GET", "/whole.bin", &elsewhere).await;
    assert!(served.is_hit(), "{served}");
}

/// A cache refuses clients other than gateways: without TLS, without a certificate, and with another name.
async fn caches_answer_gateways_only(fleet: &Fleet) {
    let address = fleet.of_cache(0);
    let asked = request("GET", "/whole.bin", &[]);
    let mut plain = Client::connect(address).await;
    assert!(plain.try_exchange(&asked).await.is_err());
    // In TLS 1.3 a client learns only after the handshake that the server requires a certificate.
    let answered = match connect_trusting(address).await {
        Ok(mut stream) => exchange(&mut stream, &asked).await.is_ok(),
        Err(_) => false,
    };
    assert!(!answered, "a client without a certificate was answered");
    // Control: a gateway is admitted because of its name in the mesh.
    let others = fleet
        .tier_two
        .clone()
        .setting("TIER_ONE_NAMESPACE", "others");
    fleet.apply(&others.build());
    eventually("the other name", async || {
        fleet.get("/whole.bin").await.status == 403
    })
    .await;
}

/// An idle gateway learns of the loss from its next request, because none of its earlier requests has failed.
async fn the_first_who_asks_a_lost_cache_is_served_by_another(
    fleet: &Fleet,
    owners: &Owners,
    lost: &str,
) {
    let (target, _) = owners.iter().find(|(_, owner)| *owner == lost).unwrap();
    let answer = send(fleet.http(2), "GET", target, &[]).await;
    assert!(matches!(answer.status, 200 | 404), "{answer}");
    assert_ne!(owner_of(&answer), lost);
}

#[tokio::test]
async fn a_lost_caches_keys_move_and_nobody_notices() {
    let mut fleet = Fleet::builder("lost").await.of(3, 3).start().await;
    let many = targets(3_000);
    let before = fleet.owners(0, &many).await;
    println!("spread of {} keys: {:?}", many.len(), spread(&before));
    let objects = targets(60);
    fill(&fleet, &objects, 2_000).await;
    for target in &objects {
        fleet.hit(target).await;
    }
    let load = Load::start(Plan {
        rate: 200,
        addresses: vec![fleet.http(0), fleet.http(1)],
        targets: objects.clone(),
        keeps_connections: true,
    });
    load.more(200).await;
    let mut lost = fleet.caches.remove(1);
    let at = std::time::Instant::now();
    lost.lose();
    the_first_who_asks_a_lost_cache_is_served_by_another(&fleet, &before, lost.name()).await;
    // The gateways get no notice of the loss.
    load.more(600).await;
    let seen = load.since(at);
    println!("a cache was lost: {seen}");
    assert_eq!(seen.failures, Vec::<String>::new());
    lost.say_ready(false);
    fleet.known(&lost, false).await;
    load.more(200).await;
    assert_eq!(load.since(at).failures, Vec::<String>::new());
    load.stop();
    let after = fleet.owners(0, &many).await;
    assert_eq!(after, fleet.owners(1, &many).await);
    let moved = moved(&before, &after);
    let must = moved
        .iter()
        .filter(|target| before[**target] == lost.name())
        .count();
    let others = moved.len() - must;
    println!("moved: {must} of the lost cache's, {others} of the others'");
    assert_eq!(must, spread(&before)[lost.name()]);
    assert!(
        others * 100 <= many.len() * 3,
        "{others} of {} keys moved for nothing",
        many.len()
    );
    // Each cache owns about a third.
    for (owner, keys) in spread(&before) {
        let share = keys as f64 / many.len() as f64;
        assert!((0.28..0.39).contains(&share), "{owner} owns {share}");
    }
}

/// Sends one object's request by many clients at once, and returns the number of responses from each cache.
async fn crowd_on(fleet: &Fleet, target: &str) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    let crowd = Crowd::connect(fleet.http(0), 300).await;
    for response in crowd.fire(target).land().await.all(200) {
        *shares.entry(owner_of(response).to_owned()).or_default() += 1;
    }
    shares
}

#[tokio::test]
async fn a_hot_key_is_spread_over_caches_where_that_is_wanted() {
    let fleet = Fleet::builder("hot").await.of(1, 3).start().await;
    let keys = targets(50);
    fill(&fleet, &keys, 2_000).await;
    for (what, target) in [("cold", "/object-0"), ("hot", "/object-0")] {
        let shares = crowd_on(&fleet, target).await;
        println!("300 clients at once, {what}: {shares:?}");
        assert_eq!(shares.len(), 1, "{shares:?}");
    }
    assert_eq!(fleet.all_fetches(), 1);

    let spread = fleet.tier_one.clone().component("spread-hot-keys");
    fleet.apply(&spread.build());
    eventually("another cache", async || {
        crowd_on(&fleet, "/object-0").await.len() > 1
    })
    .await;
    let shares = crowd_on(&fleet, "/object-0").await;
    println!("300 clients at once, hot, spread: {shares:?}");
    // The price: each of those caches fetches the object. The same applies to cold objects.
    let before = fleet.all_fetches();
    assert!((2..=3).contains(&before), "{before} fetches");
    let crowd = Crowd::connect(fleet.http(0), 490).await;
    let flight = crowd.fire_each(|client| request("GET", &keys[1 + client % 49], &[]));
    let _ = flight.land().await.all(200);
    let fetched = fleet.all_fetches() - before;
    println!("490 clients of 49 cold objects, spread: {fetched} fetches");
    assert!((49..=3 * 49).contains(&fetched), "{fetched} fetches");
    a_cache_that_leaves_finishes_what_it_has_begun(fleet).await;
}

async fn a_cache_that_leaves_finishes_what_it_has_begun(mut fleet: Fleet) {
    fleet.bucket.put_stamped("held.bin", 1, 200_000).await;
    let gate = fleet.bucket.proxy().hold("/held.bin");
    let mut client = Client::connect(fleet.http(0)).await;
    client.send(request("GET", "/held.bin", &[])).await.unwrap();
    gate.wait_reached(1).await;
    let owners = fleet.owners(0, &["/held.bin".to_owned()]).await;
    let named = |cache: &sluice_tests::mesh::pod::Pod| cache.name() == owners["/held.bin"];
    let owner = fleet.caches.iter().position(named).unwrap();
    fleet.withdraw(owner).await;
    let mut leaving = fleet.caches.remove(owner);
    leaving.begin_termination();
    eventually("draining", async || {
        leaving.log().contains("active connections")
    })
    .await;
    gate.open();
    let response = client.response().await.unwrap();
    let _ = response.stamp("/held.bin");
    assert_eq!(owner_of(&response), leaving.name());
    assert!(leaving.terminate().await.success(), "{}", leaving.log());
    // Another cache owns the key now.
    let next = fleet.hit("/held.bin").await;
    assert_ne!(owner_of(&next), leaving.name());
    assert_eq!(fleet.fetches("held.bin"), 2);
}

#[tokio::test]
async fn a_fleet_that_is_its_own_origin_refuses_itself() {
    let fleet = Fleet::builder("loop").await.of(1, 1).start().await;
    fleet.bucket.put_stamped("a.bin", 1, 2_000).await;
    let _ = fleet.get("/a.bin").await.stamp("/a.bin");
    let gateway = json!([{"address": fleet.gateways[0].address(), "ports": {"https": 8080}}]);
    let looped = fleet
        .tier_two
        .clone()
        .patch(
            "ServiceEntry",
            "sluice-bucket",
            &replace("/spec/endpoints", &gateway),
        )
        .patch(
            "DestinationRule",
            "sluice-bucket",
            &replace("/spec/trafficPolicy/tls", &json!({"mode": "DISABLE"})),
        );
    fleet.apply(&looped.build());
    let mut asked = 0;
    eventually("the loop", async || {
        asked += 1;
        fleet.get(&format!("/b-{asked}.bin")).await.status == 508
    })
    .await;
    let fetches = async || {
        fleet.caches[0]
            .statistic("wasmcustom.sluice_origin_fetches")
            .await
    };
    let before = fetches().await;
    let refused = fleet.get("/c.bin").await;
    assert_eq!(refused.status, 508, "{refused}");
    // The request has passed the fleet once, not twice.
    assert_eq!(fetches().await, before + 1);
}

fn replace(path: &str, value: &Value) -> Value {
    json!([{"op": "replace", "path": path, "value": value}])
}
