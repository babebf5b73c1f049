// SPDX-License-Identifier: Apache-2.0
//! The named changes of an edge's configuration.

use crate::contenders::variants::{BYTES, access};
use serde_json::{Value, json};

/// Changes Envoy's configuration.
pub type Change = fn(&mut Value);

const CHANGES: [(&str, Change); 11] = [
    // Default settings.
    ("edge", |_| {}),
    ("bare", bare),
    ("direct", direct),
    ("no-hot-tier", no_hot_tier),
    ("memory-store", memory_store),
    ("no-hop", no_hop),
    ("no-next-turn", no_next_turn),
    ("allow", allow),
    (access::SIGNED, signed),
    (access::SIGNATURE_IGNORED, |_| {}),
    ("beside-access", beside_access),
];

/// The names of all changes.
pub fn names() -> Vec<&'static str> {
    CHANGES.iter().map(|(name, _)| *name).collect()
}

/// The change of that name.
pub fn find(wanted: &str) -> Option<Change> {
    let found = CHANGES.iter().find(|(name, _)| *name == wanted);
    found.map(|(_, change)| *change)
}

/// The element of this name in a list.
fn named<'a>(among: &'a mut Value, name: &str) -> &'a mut Value {
    let mut list = among.as_array_mut().into_iter().flatten();
    let found = list.find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("the configuration has no {name}"))
}

fn remove(object: &mut Value, field: &str) {
    let object = object.as_object_mut().expect("an object");
    assert!(
        object.remove(field).is_some(),
        "the configuration has no {field}"
    );
}

/// The connection manager of the clients' listener, or of that of the hop to the origin.
fn manager<'a>(config: &'a mut Value, listener: &str) -> &'a mut Value {
    let listener = named(&mut config["static_resources"]["listeners"], listener);
    &mut listener["filter_chains"][0]["filters"][0]["typed_config"]
}

/// Changes the HTTP filters of this name of all listeners.
fn each_filter(config: &mut Value, name: &str, change: impl Fn(&mut Value)) {
    let listeners = config["static_resources"]["listeners"].as_array_mut();
    for listener in listeners.into_iter().flatten() {
        let manager = &mut listener["filter_chains"][0]["filters"][0]["typed_config"];
        let filters = manager["http_filters"].as_array_mut().into_iter().flatten();
        filters
            .filter(|filter| filter["name"] == name)
            .for_each(&change);
    }
}

/// Keeps the HTTP filters of a list for whose names `keep` is true.
fn retain(filters: &mut Value, keep: impl Fn(&str) -> bool) {
    let filters = filters.as_array_mut().expect("filters");
    filters.retain(|filter| keep(filter["name"].as_str().unwrap_or_default()));
}

/// Removes filters from the clients' listener.
fn without(config: &mut Value, names: &[&str]) {
    retain(&mut manager(config, "edge")["http_filters"], |name| {
        !names.contains(&name)
    });
}

/// Gives the clients' listener one route.
fn route(config: &mut Value, mut route: Value) {
    route["match"] = json!({"prefix": "/"});
    manager(config, "edge")["route_config"]["virtual_hosts"][0]["routes"] = json!([route]);
}

/// Envoy and its cache, without Sluice's filter and the parts that belong to it.
fn bare(config: &mut Value) {
    without(config, &["sluice.edge"]);
    remove(manager(config, "edge"), "early_header_mutation_extensions");
    route(config, json!({"route": {"cluster": "origin_server"}}));
}

/// Envoy's own `direct_response`.
fn direct(config: &mut Value) {
    without(config, &["sluice.edge", "cache", "health_check"]);
    remove(manager(config, "edge"), "early_header_mutation_extensions");
    manager(config, "edge")["route_config"]["max_direct_response_body_size_bytes"] = BYTES.into();
    let body = json!({"inline_string": "x".repeat(BYTES)});
    route(
        config,
        json!({"direct_response": {"status": 200, "body": body}}),
    );
}

/// `HOT_BYTES=0`.
fn no_hot_tier(config: &mut Value) {
    each_policy(config, |policy| policy["hot"] = json!({"max_bytes": 0}));
}

/// Sets the cache's state as the entry point does at a first start: the store is empty, and there are no purges.
pub fn first_start(config: &mut Value) {
    let purge = json!({"journal": [], "warm": false});
    each_policy(config, |policy| policy["purge"] = purge.clone());
}

/// Rules for the addresses of clients.
fn allow(config: &mut Value) {
    each_policy(config, |policy| policy["access"] = access::allow());
}

/// Rules for signed URLs.
fn signed(config: &mut Value) {
    each_policy(config, |policy| policy["access"] = access::signed());
}

/// Rules for another site than that of the clients.
fn beside_access(config: &mut Value) {
    each_document(config, |document| {
        document["sites"][0]["policy"]["access"] = access::allow();
    });
}

/// Changes the policy of the filter for the whole edge.
fn each_policy(config: &mut Value, change: impl Fn(&mut Value)) {
    each_document(config, |document| {
        // With named sites it is in the part of the edge.
        change(match document.get_mut("edge") {
            Some(edge) => edge,
            None => document,
        });
    });
}

/// Changes the configuration of the filter.
fn each_document(config: &mut Value, change: impl Fn(&mut Value)) {
    each_filter(config, "sluice.edge", |filter| {
        let config = &mut filter["typed_config"];
        let value = match config.get("filter_config") {
            Some(_) => &mut config["filter_config"]["value"],
            None => &mut config["config"]["configuration"]["value"],
        };
        let mut document: Value =
            serde_json::from_str(value.as_str().expect("a policy")).expect("a policy");
        change(&mut document);
        *value = document.to_string().into();
    });
}

/// Envoy's unbounded memory cache.
fn memory_store(config: &mut Value) {
    let store = "type.googleapis.com/envoy.extensions.http.cache.simple_http_cache.v3.SimpleHttpCacheConfig";
    each_filter(config, "cache", |filter| {
        filter["typed_config"]["typed_config"] = json!({"@type": store});
    });
}

/// Options of a cluster for HTTP.
fn protocol_options<'a>(config: &'a mut Value, cluster: &str) -> &'a mut Value {
    let cluster = named(&mut config["static_resources"]["clusters"], cluster);
    let options = &mut cluster["typed_extension_protocol_options"];
    &mut options["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"]
}

/// Makes cluster `origin` the origin itself: without the guard, retries and responses for a missing origin.
fn no_hop(config: &mut Value) {
    let clusters = &mut config["static_resources"]["clusters"];
    let mut server = named(clusters, "origin_server")["load_assignment"].clone();
    server["cluster_name"] = "origin".into();
    named(clusters, "origin")["load_assignment"] = server;
}

/// Removes the wait for a turn. The cache then does not survive the response of a dead VM.
fn no_next_turn(config: &mut Value) {
    retain(
        &mut protocol_options(config, "origin")["http_filters"],
        |name| name != "next_turn",
    );
}
