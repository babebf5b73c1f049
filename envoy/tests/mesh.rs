// SPDX-License-Identifier: Apache-2.0
//! A gateway in the mesh and the standalone edge have the same configuration, in the parts that they share.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};
use sluice::render::render;
use sluice::settings::Settings;
use sluice_core::policy::Policy;

const MANAGER: &str = "/filter_chains/0/filters/0/typed_config";

/// The standalone edge's configuration for an origin of this kind.
fn standalone(variables: &[(&str, &str)]) -> Value {
    let mut all = HashMap::from([
        ("SLUICE_CONCURRENCY", "2"),
        ("AWS_REGION", "nowhere-1"),
        ("SLUICE_WASM", "sluice.wasm"),
    ]);
    all.extend(variables.iter().copied());
    let settings = Settings::from_lookup(&|name| all.get(name).map(Into::into)).unwrap();
    let origin = settings.origin.clone().unwrap();
    let text = render(&settings, &origin, Path::new("/var/cache/sluice")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// The patches of an `EnvoyFilter`, with YAML's anchors resolved.
fn patches(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../mesh")
        .join(file);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let filter: Value = serde_saphyr::from_str(&text).unwrap();
    filter["spec"]["configPatches"].as_array().unwrap().clone()
}

/// The value of the only patch of this kind.
fn only(file: &str, kind: &str) -> Value {
    let patches = patches(file);
    let mut found = patches.iter().filter(|patch| patch["applyTo"] == kind);
    let only = found.next().unwrap()["patch"]["value"].clone();
    assert!(found.next().is_none(), "{file}: {kind}");
    only
}

/// The listener for the filter's own requests, with the filters that `kustomization.yaml` copies into it.
fn background_of_the_gateway() -> Value {
    let mut listener = only("base/background.yaml", "LISTENER");
    let filters = &mut listener.pointer_mut(MANAGER).unwrap()["http_filters"];
    for filter in filters.as_array_mut().unwrap() {
        let file = match filter["name"].as_str().unwrap() {
            "sluice.edge" => "base/edge.yaml",
            "guard" => "base/guard.yaml",
            "cache" => "base/cache.yaml",
            _ => continue,
        };
        *filter = only(file, "HTTP_FILTER");
    }
    listener
}

/// The value of the patch with this kind and name.
fn value(file: &str, kind: &str, name: &str) -> Value {
    let found: Vec<_> = patches(file)
        .iter()
        .filter(|patch| patch["applyTo"] == kind)
        .map(|patch| patch["patch"]["value"].clone())
        .filter(|value| value["name"] == name)
        .collect();
    assert_eq!(found.len(), 1, "{file}: {name}");
    found[0].clone()
}

fn named(list: &Value, name: &str) -> Value {
    let found = list
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}")).clone()
}

/// The filters with the two roles discovered by name, as in the mesh.
fn discovered(mut value: Value) -> Value {
    each_object(&mut value, &mut |object| {
        let wasm = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm";
        if object
            .get("typed_config")
            .is_some_and(|config| config["@type"] == wasm)
        {
            object.remove("typed_config");
            let source =
                json!({"ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "0s"});
            let discovery = json!({"config_source": source, "type_urls": [wasm]});
            object.insert("config_discovery".to_owned(), discovery);
        }
    });
    value
}

fn each_object(value: &mut Value, change: &mut dyn FnMut(&mut serde_json::Map<String, Value>)) {
    match value {
        Value::Object(fields) => {
            change(fields);
            fields
                .values_mut()
                .for_each(|field| each_object(field, change));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_object(item, change)),
        _ => {}
    }
}

/// The value with some texts replaced.
fn renamed(value: &Value, names: &[(&str, &str)]) -> Value {
    let text = names.iter().fold(value.to_string(), |text, (from, to)| {
        text.replace(&format!("\"{from}\""), &format!("\"{to}\""))
    });
    serde_json::from_str(&text).unwrap()
}

/// The filter without its sizes, which differ for each deployment.
fn unsized_cache(mut value: Value) -> Value {
    each_object(&mut value, &mut |object| {
        for size in ["max_cache_size_bytes", "max_cache_entry_count"] {
            object.remove(size);
        }
        // The template has these values as text.
        if let Some(ignored) = object.get_mut("ignore_request_cache_control_header") {
            *ignored = json!(ignored == "true" || ignored == true);
        }
    });
    value
}

/// The value without the parts that only one side has. The standalone edge reports the store's room to the filter,
/// waits for a turn in native code, and has the slicer; the mesh calls the listener for the filter's own requests
/// instead of the wait.
fn comparable(mut value: Value) -> Value {
    const OF_ONE: [&str; 3] = ["next_turn", "sluice_background+no_room", "sluice_slices"];
    each_object(&mut value, &mut |object| {
        for list in object.values_mut().filter_map(Value::as_array_mut) {
            list.retain(|item| !OF_ONE.iter().any(|name| item["name"] == *name));
        }
    });
    value
}

fn assert_same(what: &str, mesh: &Value, standalone: &Value) {
    let [mesh, standalone] =
        [mesh, standalone].map(|value| serde_json::to_string_pretty(value).unwrap());
    assert_eq!(mesh, standalone, "{what}: in the mesh, and standalone");
}

/// The configuration with which a route of the mesh switches a filter on.
fn on() -> Value {
    json!({
        "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
        "is_optional": true,
        "config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
    })
}

/// The filter without its switch: in the mesh the filter is off, except for routes that switch it on.
fn switched(mut filter: Value) -> Value {
    let switch = filter.as_object_mut().unwrap().remove("disabled");
    assert_eq!(switch, Some(true.into()), "{filter}");
    filter
}

/// The background listener without the switches of its filters, which its route has on.
fn switched_background(mut listener: Value) -> Value {
    let manager = listener.pointer_mut(MANAGER).unwrap();
    let mut switched_on = serde_json::Map::new();
    for filter in manager["http_filters"].as_array_mut().unwrap() {
        let name = filter["name"].as_str().unwrap().to_owned();
        if name != "router" {
            *filter = switched(filter.take());
            switched_on.insert(name, on());
        }
    }
    let hosts = manager["route_config"]["virtual_hosts"].as_array_mut();
    for host in hosts.unwrap() {
        for route in host["routes"].as_array_mut().unwrap() {
            let fields = route.as_object_mut().unwrap();
            let filters = fields.remove("typed_per_filter_config");
            let is_on = fields
                .get("name")
                .is_some_and(|name| name == "sluice_background");
            let expected = is_on.then(|| Value::from(switched_on.clone()));
            assert_eq!(filters, expected);
        }
    }
    listener
}

/// Removes one filter from a chain, and returns it.
fn take(filters: &mut Value, name: &str) -> Value {
    let filters = filters.as_array_mut().unwrap();
    let at = filters.iter().position(|filter| filter["name"] == name);
    filters.remove(at.unwrap_or_else(|| panic!("no {name}")))
}

/// The hop of an edge with one site, in a form without reloads: the parts that each route has for its site are in
/// the listener's chain, as in the mesh.
fn hop_of_one_site(edge: &Value) -> Value {
    let mut hop = named(&edge["static_resources"]["listeners"], "origin");
    let mut manager = hop.pointer_mut(MANAGER).unwrap().take();
    let mut chain = manager["http_filters"].take();
    take(&mut chain, "paths");
    take(&mut chain, "compressors");
    // A gateway does not have the native module.
    take(&mut chain, "once_more");
    take(&mut chain, "own_connection");
    manager["route_config"]
        .as_object_mut()
        .unwrap()
        .remove("name");
    let host = manager["route_config"]["virtual_hosts"][0]
        .as_object_mut()
        .unwrap();
    let is_bucket = host.remove("typed_per_filter_config").is_some();
    for route in host["routes"].as_array_mut().unwrap() {
        let fields = route.as_object_mut().unwrap();
        if let Some(action) = fields["route"].as_object_mut() {
            action.remove("upgrade_configs");
        }
        let Some(filters) = fields.get_mut("typed_per_filter_config") else {
            continue;
        };
        let filters = filters.as_object_mut().unwrap();
        if let Some(disabled) = filters.remove("paths") {
            filters.insert("strip_internal_headers".to_owned(), disabled.clone());
            if is_bucket {
                filters.insert("sign".to_owned(), disabled);
            }
        }
    }
    let chain = chain.as_array_mut().unwrap();
    let router = chain.pop().unwrap();
    chain.extend(server_filters_of_the_hop(edge));
    chain.push(router);
    if is_bucket {
        let fields = manager.as_object_mut().unwrap();
        for other in [
            "http_protocol_options",
            "proxy_100_continue",
            "upgrade_configs",
        ] {
            fields.remove(other);
        }
    } else {
        // A policy without compression settings does not compress an HTTP origin's responses here.
        chain.retain(|filter| filter["disabled"].is_null());
    }
    manager["http_filters"] = chain.clone().into();
    *hop.pointer_mut(MANAGER).unwrap() = manager;
    hop
}

/// The request filters in the server's chain, which the mesh has in the hop: the removal of headers, and a bucket's
/// signature.
fn server_filters_of_the_hop(edge: &Value) -> Vec<Value> {
    let server = named(&edge["static_resources"]["clusters"], "origin_server");
    let mut filters = upstream_filters(&server).as_array().unwrap().clone();
    filters.retain(|filter| filter["name"] == "strip_internal_headers" || filter["name"] == "sign");
    let mutations = filters[0]["typed_config"]["mutations"].as_object_mut();
    mutations.unwrap().remove("response_mutations");
    filters
}

/// The cluster of a bucket's server, without the filters that the mesh has in the hop.
fn server_of_one_site(edge: &Value) -> Value {
    let mut server = named(&edge["static_resources"]["clusters"], "origin_server");
    let chain = &mut server["typed_extension_protocol_options"][PROTOCOL_OPTIONS]["http_filters"];
    take(chain, "sign");
    take(chain, "switching");
    let filters = chain.as_array_mut().unwrap().iter_mut();
    for filter in filters.filter(|filter| filter["name"] == "strip_internal_headers") {
        let mutations = filter["typed_config"]["mutations"].as_object_mut().unwrap();
        mutations.remove("request_mutations");
        let responses = mutations["response_mutations"].as_array_mut().unwrap();
        // Istio's gateways overwrite the header.
        responses.retain(|mutation| mutation["remove"] != "server");
    }
    server
}

const PROTOCOL_OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

fn upstream_filters(cluster: &Value) -> &Value {
    &cluster["typed_extension_protocol_options"][PROTOCOL_OPTIONS]["http_filters"]
}

/// The guard of a bucket's paths in the form for the mesh, where it is behind EDGE and a path towards the store has
/// qualifiers.
fn guard_behind_edge(edge: &Value) -> Value {
    let hop = named(&edge["static_resources"]["listeners"], "origin");
    let host = &hop.pointer(MANAGER).unwrap()["route_config"]["virtual_hosts"][0];
    let mut rbac = host["typed_per_filter_config"]["paths"]["rbac"].clone();
    let rules = "/rules/policies/canonical/permissions/0/and_rules/rules";
    let rules = rbac.pointer_mut(rules).unwrap();
    let allowed = &mut rules[1]["header"]["string_match"]["safe_regex"]["regex"];
    *allowed = format!("{}(?:#[^#]*)?", allowed.as_str().unwrap()).into();
    let forbidden = &mut rules[2]["not_rule"]["header"]["string_match"]["safe_regex"]["regex"];
    let both = forbidden.as_str().unwrap();
    *forbidden = both
        .replace("[^?]", "[^?#]")
        .replace("[/?]", "[/?#]")
        .into();
    rbac["@type"] = "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC".into();
    json!({"name": "guard", "typed_config": rbac})
}

fn bucket() -> Value {
    let any_file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/localhost.crt");
    standalone(&[
        ("SLUICE_ORIGIN", "s3://bucket"),
        ("SSL_CERT_FILE", any_file),
    ])
}

const BUCKETS_HOST: &str = "bucket.s3.nowhere-1.amazonaws.com";

#[test]
fn the_gateways_clusters_are_those_of_the_standalone_edge() {
    let bucket = bucket();
    let edge = &bucket["static_resources"]["clusters"];
    for (file, name) in [
        ("base/background.yaml", "sluice_background"),
        ("base/origin.yaml", "origin"),
    ] {
        assert_same(
            name,
            &comparable(value(file, "CLUSTER", name)),
            &comparable(discovered(named(edge, name))),
        );
    }
    // Istio adds the last filter.
    let mut server = server_of_one_site(&bucket);
    server.as_object_mut().unwrap().retain(|field, _| {
        [
            "per_connection_buffer_limit_bytes",
            "typed_extension_protocol_options",
        ]
        .contains(&field.as_str())
    });
    assert_same("origin_server", &only("base/hop.yaml", "CLUSTER"), &server);
}

#[test]
fn the_gateways_hop_is_that_of_the_standalone_edge() {
    let edge = hop_of_one_site(&bucket());
    let names = [
        ("origin_server", "outbound|443||BUCKET_HOST"),
        (BUCKETS_HOST, "BUCKET_HOST"),
        ("nowhere-1", "REGION"),
    ];
    assert_same(
        "the hop",
        &value("base/hop.yaml", "LISTENER", "origin"),
        &renamed(&edge, &names),
    );
}

#[test]
fn the_gateways_filters_are_those_of_the_standalone_edge() {
    let bucket = bucket();
    let listeners = &bucket["static_resources"]["listeners"];
    let guard = guard_behind_edge(&bucket);
    let background = unsized_cache(discovered(named(listeners, "sluice_background")));
    let background = comparable(background);
    let mesh = switched_background(background_of_the_gateway());
    let mut mesh = comparable(unsized_cache(mesh));
    let manager = mesh.pointer_mut(MANAGER).unwrap();
    let of_mesh = take(&mut manager["http_filters"], "guard");
    assert_same("the background listener's guard", &of_mesh, &guard);
    assert_same("the background listener", &mesh, &background);
    assert_same(
        "guard",
        &switched(value("base/guard.yaml", "HTTP_FILTER", "guard")),
        &guard,
    );
    let filters = &listeners[0].pointer(MANAGER).unwrap()["http_filters"];
    for (file, name) in [
        ("base/edge.yaml", "sluice.edge"),
        ("base/cache.yaml", "cache"),
    ] {
        let standalone = unsized_cache(discovered(named(filters, name)));
        assert_same(
            name,
            &switched(unsized_cache(value(file, "HTTP_FILTER", name))),
            &standalone,
        );
    }
}

#[test]
fn clients_connections_have_the_standalone_edges_bounds() {
    let standalone = &bucket()["static_resources"]["listeners"][0];
    let edge = standalone.pointer(MANAGER).unwrap();
    let mesh = &only("base/connections.yaml", "NETWORK_FILTER")["typed_config"];
    for field in [
        "server_name",
        "max_request_headers_kb",
        "common_http_protocol_options",
        "http2_protocol_options",
        "request_headers_timeout",
        "request_timeout",
        "stream_idle_timeout",
        "early_header_mutation_extensions",
    ] {
        assert_same(field, &mesh[field], &edge[field]);
    }
    let ignored = "/http_protocol_options/ignore_http_11_upgrade";
    let [of_mesh, of_edge] = [mesh, edge].map(|manager| manager.pointer(ignored).unwrap());
    assert_same(ignored, of_mesh, of_edge);
    let of_sidecar = only("overlays/sidecar/edge.yaml", "NETWORK_FILTER");
    assert_same(
        ignored,
        of_sidecar["typed_config"].pointer(ignored).unwrap(),
        of_edge,
    );
    let limit = "per_connection_buffer_limit_bytes";
    let listener = only("base/connections.yaml", "LISTENER");
    assert_same(limit, &listener[limit], &standalone[limit]);
}

/// A list of filters of an HTTP connection manager.
fn http_filters(listener: &Value) -> Value {
    listener.pointer(MANAGER).unwrap()["http_filters"].clone()
}

#[test]
fn a_sidecars_part_is_that_of_the_standalone_edge_before_an_http_origin() {
    let edge = standalone(&[("SLUICE_ORIGIN", "http://127.0.0.1:3000")]);
    let (listeners, clusters) = (
        &edge["static_resources"]["listeners"],
        &edge["static_resources"]["clusters"],
    );
    let file = "overlays/sidecar/edge.yaml";
    let background = unsized_cache(discovered(named(listeners, "sluice_background")));
    let mesh = switched_background(value(file, "LISTENER", "sluice_background"));
    let mesh = unsized_cache(mesh);
    let [mesh, background] = [mesh, background].map(comparable);
    assert_same("the background listener", &mesh, &background);
    for name in ["sluice.edge", "cache"] {
        let standalone = unsized_cache(discovered(named(&http_filters(&listeners[0]), name)));
        assert_same(
            name,
            &switched(unsized_cache(value(file, "HTTP_FILTER", name))),
            &standalone,
        );
    }
    let cluster = discovered(named(clusters, "sluice_background"));
    assert_same(
        "the background cluster",
        &value(file, "CLUSTER", "sluice_background"),
        &cluster,
    );
    let file = "overlays/sidecar/hop.yaml";
    assert_same(
        "origin",
        &comparable(value(file, "CLUSTER", "origin")),
        &comparable(discovered(named(clusters, "origin"))),
    );
    let hop = renamed(
        &hop_of_one_site(&edge),
        &[("origin_server", "inbound|8080||")],
    );
    assert_same("the hop", &value(file, "LISTENER", "origin"), &hop);
}

/// A filter that is off on all routes has no effect.
#[test]
fn every_filter_that_is_off_is_on_for_a_route() {
    for (filters, routes) in [
        (
            &["base/edge.yaml", "base/guard.yaml", "base/cache.yaml"][..],
            "base/origin.yaml",
        ),
        (&["overlays/sidecar/edge.yaml"], "overlays/sidecar/hop.yaml"),
        (
            &["components/tier-one/front.yaml"],
            "components/tier-one/front.yaml",
        ),
    ] {
        let patches_of = |file: &str, kind: &str| -> Vec<Value> {
            let patches = patches(file).into_iter();
            let patches = patches.filter(|patch| patch["applyTo"] == kind);
            patches
                .map(|patch| patch["patch"]["value"].clone())
                .collect()
        };
        let off = filters
            .iter()
            .flat_map(|file| patches_of(file, "HTTP_FILTER"));
        let names = off.map(|filter| switched(filter)["name"].as_str().unwrap().to_owned());
        let on: serde_json::Map<_, _> = names.map(|name| (name, on())).collect();
        let routes = patches_of(routes, "HTTP_ROUTE").into_iter();
        let said = routes.map(|route| route["typed_per_filter_config"].clone());
        let said: Vec<_> = said.filter(|said| !said.is_null()).collect();
        assert!(!said.is_empty(), "{filters:?}");
        assert!(
            said.iter().all(|said| *said == Value::from(on.clone())),
            "{said:?}"
        );
    }
}

#[test]
fn a_gateway_and_a_sidecar_wait_for_a_turn_in_one_way() {
    let filter = |file| {
        let cluster = value(file, "CLUSTER", "origin");
        named(upstream_filters(&cluster), "next_turn")
    };
    let [gateway, sidecar] = ["base/origin.yaml", "overlays/sidecar/hop.yaml"].map(filter);
    assert_same("the filter", &gateway, &sidecar);
    let host = |file| {
        let listener = value(file, "LISTENER", "sluice_background");
        let routes = &listener.pointer(MANAGER).unwrap()["route_config"];
        named(&routes["virtual_hosts"], "next_turn")
    };
    let [gateway, sidecar] = ["base/background.yaml", "overlays/sidecar/edge.yaml"].map(host);
    assert_same("the host that it calls", &gateway, &sidecar);
}

#[test]
fn a_sidecars_policy_is_the_built_in_one() {
    let edge = standalone(&[("SLUICE_ORIGIN", "http://127.0.0.1:3000")]);
    let filter = named(
        &http_filters(&edge["static_resources"]["listeners"][0]),
        "sluice.edge",
    );
    let edge = &filter["typed_config"]["config"]["configuration"]["value"];
    let parse = |text: &str| Policy::parse(text.as_bytes()).unwrap();
    let (mut edge, mesh) = (
        parse(edge.as_str().unwrap()),
        parse(&policy_of("overlays/sidecar").to_string()),
    );
    // A sidecar stores smaller objects, and has no memory for a hot tier and no slicer.
    edge.cache.max_object_bytes = mesh.cache.max_object_bytes;
    let edge_wide = std::rc::Rc::make_mut(&mut edge.edge);
    edge_wide.hot = mesh.edge.hot;
    assert!(edge_wide.slices.is_on() && !mesh.edge.slices.is_on());
    edge_wide.slices.bytes = mesh.edge.slices.bytes;
    assert_told(&mut edge, &mesh);
    assert_eq!(mesh, edge);
}

#[test]
fn the_roles_are_the_standalone_edges() {
    let sidecars = "overlays/sidecar/roles.yaml";
    let mesh = |file, name| value(file, "EXTENSION_CONFIG", name);
    assert_roles(["sluice.edge", "sluice.origin"].map(|name| mesh(sidecars, name)));
    // The other roles of a gateway share the VM of this role.
    let probe = mesh("base/probe.yaml", "sluice.probe");
    let vm = &probe["typed_config"]["config"]["vm_config"];
    let roles = [
        ("base/edge.yaml", "sluice.edge"),
        ("base/origin.yaml", "sluice.origin"),
    ];
    assert_roles(roles.map(|(file, name)| {
        let mut role = mesh(file, name);
        role["typed_config"]["config"]["vm_config"] = vm.clone();
        role
    }));
}

fn assert_roles(mesh: [Value; 2]) {
    let edge = bucket();
    let filters = edge["static_resources"]["listeners"][0]
        .pointer(MANAGER)
        .unwrap()["http_filters"]
        .clone();
    let cluster = named(&edge["static_resources"]["clusters"], "origin");
    let chain = cluster["typed_extension_protocol_options"]
        ["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"]["http_filters"]
        .clone();
    let standalone = [
        named(&filters, "sluice.edge"),
        named(&chain, "sluice.origin"),
    ];
    for (mesh, standalone) in mesh.into_iter().zip(standalone) {
        let [mesh, standalone] = [mesh, standalone].map(|mut role| {
            let config = role["typed_config"]["config"].as_object_mut().unwrap();
            config["vm_config"]["code"].take();
            // The configuration is a text here, and fields there, so it is compared below.
            config.remove("configuration");
            role
        });
        assert_same("a role", &mesh, &standalone);
    }
}

/// The policy in a folder of the mesh.
fn policy_of(folder: &str) -> Value {
    let file = format!("../mesh/{folder}/policy.yaml");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(path).unwrap();
    serde_saphyr::from_str::<Value>(&text).unwrap()["spec"].clone()
}

#[test]
fn the_gateways_policy_is_the_built_in_one() {
    let policy = policy_of("base");
    let edge = bucket();
    let edge = edge["static_resources"]["listeners"][0]
        .pointer(MANAGER)
        .unwrap();
    let edge = &named(&edge["http_filters"], "sluice.edge")["typed_config"]["config"]["configuration"]
        ["value"];
    let parse = |mut policy: Value| {
        policy["origin"]["addressing"] = json!("virtual_host");
        policy["origin"]["bucket"] = json!("bucket");
        policy["origin"]["authority"] = json!(BUCKETS_HOST);
        Policy::parse(policy.to_string().as_bytes()).unwrap()
    };
    let mut edge = parse(serde_json::from_str(edge.as_str().unwrap()).unwrap());
    let policy = parse(policy);
    // There are no purges in the mesh, so the entries of earlier runs on the volume are valid.
    assert!(
        policy.edge.purge.warm
            && policy.edge.purge.journal == Some(Vec::new())
            && policy.edge.purge.token.is_none()
    );
    let edge_wide = std::rc::Rc::make_mut(&mut edge.edge);
    edge_wide.purge = policy.edge.purge.clone();
    // The edge's default is for a machine that it has alone; a pod has less memory.
    assert!(policy.edge.hot.is_on() && policy.edge.hot.max_bytes < edge_wide.hot.max_bytes);
    edge_wide.hot.max_bytes = policy.edge.hot.max_bytes;
    // The mesh has no slicer.
    assert!(edge_wide.slices.is_on() && !policy.edge.slices.is_on());
    edge_wide.slices.bytes = policy.edge.slices.bytes;
    assert_told(&mut edge, &policy);
    assert_eq!(policy, edge);
}

/// All `EnvoyFilter`s of the manifests, with their files.
fn envoy_filters() -> Vec<(String, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mesh");
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|name| name == "yaml") {
                let text = std::fs::read_to_string(&path).unwrap();
                let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
                let file = path.strip_prefix(&root).unwrap().display().to_string();
                found.extend(
                    documents
                        .into_iter()
                        .filter(|document| document["kind"] == "EnvoyFilter")
                        .map(|document| (file.clone(), document)),
                );
            }
        }
    }
    assert!(found.len() > 10);
    found
}

#[test]
fn every_patch_is_for_the_tested_versions_of_istio() {
    for (file, filter) in envoy_filters() {
        for patch in filter["spec"]["configPatches"].as_array().unwrap() {
            let versions = &patch["match"]["proxy"]["proxyVersion"];
            assert_eq!(versions, "PROXY_VERSION", "{file}: {}", patch["applyTo"]);
        }
    }
}

#[test]
fn a_caches_requests_lose_what_those_of_a_gateway_by_itself_lose() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../mesh/components/tier-two/request-mutations.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let mut fleets: Value = serde_saphyr::from_str(&text).unwrap();
    let fleets = fleets["spec"].as_array_mut().unwrap();
    assert_eq!(fleets.remove(0)["append"]["header"]["key"], "cdn-loop");
    let hop = only("base/hop.yaml", "LISTENER");
    let strip = named(&http_filters(&hop), "strip_internal_headers");
    let own = strip["typed_config"]["mutations"]["request_mutations"].clone();
    assert_eq!(Value::from(fleets.clone()), own);
}

/// Expects that the standalone edge reports on requests only if the access log or traces show it, and the mesh
/// always.
fn assert_told(edge: &mut Policy, mesh: &Policy) {
    assert!(mesh.response.account && !edge.response.account);
    edge.response.account = true;
}

/// The YAML document in a file of the repository.
fn document(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_str(&text).unwrap()
}

/// The relabelings of Prometheus, with the names that the operator's definitions have for their fields.
fn as_the_operator_names(relabelings: &Value) -> Vec<Value> {
    let renamed = |relabeling: &Value| {
        let fields = relabeling.as_object().unwrap().iter();
        let renamed = fields.map(|(name, value)| {
            let name = match name.as_str() {
                "source_labels" => "sourceLabels",
                "target_label" => "targetLabel",
                other => other,
            };
            (name.to_owned(), value.clone())
        });
        Value::Object(renamed.collect())
    };
    relabelings
        .as_array()
        .unwrap()
        .iter()
        .map(renamed)
        .collect()
}

#[test]
fn the_operator_names_the_metrics_of_gateways_as_the_scrape_configuration_does() {
    let scrape = &document("envoy/observability/prometheus-istio.yaml")["scrape_configs"][0];
    let mut wanted = as_the_operator_names(&scrape["metric_relabel_configs"]);
    // A gateway has no label `sluice_cache`: the rule for sidecars, and the removal of the label, are for nothing.
    wanted.retain(|relabeling| {
        !relabeling["regex"]
            .as_str()
            .unwrap()
            .starts_with("enabled;")
    });
    let last = wanted.last_mut().unwrap();
    let dropped = last["regex"].as_str().unwrap().replace("|sluice_cache", "");
    last["regex"] = dropped.into();

    let monitor = document("mesh/components/pod-monitor/pod-monitor.yaml");
    let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
    assert_eq!(endpoint["metricRelabelings"], Value::Array(wanted));
    assert_eq!(endpoint["path"], scrape["metrics_path"]);
    // The address and the instance are the same; the operator itself finds the pods.
    let targets = as_the_operator_names(&scrape["relabel_configs"]);
    let same = endpoint["relabelings"].as_array().unwrap().iter();
    let others = same
        .filter(|relabeling| !targets.contains(relabeling))
        .collect::<Vec<_>>();
    assert_eq!(
        others,
        [&json!({"targetLabel": "job", "replacement": scrape["job_name"]})]
    );
}
