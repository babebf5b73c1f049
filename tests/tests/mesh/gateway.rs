// SPDX-License-Identifier: Apache-2.0
//! The gateway serves objects of a private bucket, and fetches each object once.

use crate::authorization::deny;
use serde_json::{Value, json};
use sluice_tests::client::crowd::stampede;
use sluice_tests::client::request;
use sluice_tests::edge::tls::{Certificate, exchange};
use sluice_tests::eventually;
use sluice_tests::mesh::gateway::Gateway;

#[tokio::test]
async fn a_private_bucket_is_served_and_asked_once_for_each_object() {
    let gateway = Gateway::builder("serving").await.start().await;
    gateway.bucket.put_stamped("a.bin", 1, 20_000).await;
    let miss = gateway.get("/a.bin").await;
    let _ = miss.stamp("/a.bin");
    assert_eq!(miss.header("server"), "sluice", "{miss}");
    assert!(!miss.headers.any_with_prefix("x-amz-"), "{miss}");
    gateway.hit("/a.bin").await;
    // HTTPS shares the cache with HTTP.
    let mut stream = gateway
        .certificate
        .connect(gateway.https(), &["http/1.1"], rustls::ALL_VERSIONS)
        .await
        .unwrap();
    let asked = request("GET", "/a.bin", &[("host", "edge.test")]);
    let (head, body) = exchange(&mut stream, &asked).await.unwrap();
    assert_eq!((head.word(1), body), ("200", miss.body));
    assert!(head.headers.get("cache-status").unwrap().contains("hit"));
    assert_eq!(gateway.fetches("a.bin"), 1);
    // The bucket receives signed requests only, over verified TLS with its name.
    let host = gateway.host();
    assert!(!gateway.front.names().is_empty());
    assert!(
        gateway.front.names().iter().all(|name| *name == host),
        "{:?}",
        gateway.front.names()
    );

    gateway.bucket.put_stamped("cold.bin", 1, 20_000).await;
    stampede(gateway.http(), 200, "/cold.bin")
        .await
        .same_object("/cold.bin");
    assert_eq!(gateway.fetches("cold.bin"), 1);
    for path in ["/..%2fother/secret", "/a%00b", "/a%2fb"] {
        let refused = gateway.get(path).await;
        assert_eq!(refused.status, 400, "{path}: {refused}");
    }
    let fetches = "wasmcustom.sluice_origin_fetches";
    assert_eq!(gateway.pod.statistic(fetches).await, 2);
    assert_eq!(
        gateway.pod.statistic("wasmcustom.sluice_host_errors").await,
        0
    );
    assert_eq!(
        gateway
            .pod
            .statistic("wasmcustom.sluice_origin_unlinked")
            .await,
        0
    );
}

#[tokio::test]
async fn without_the_filter_a_private_bucket_is_none_of_the_gateways() {
    let gateway = Gateway::builder("plain").await;
    let remove = json!([{"op": "replace", "path": "/spec/configPatches", "value": []}]);
    let gateway = gateway
        .with(|overlay| {
            // The probe's EnvoyFilter stays, because a pod without the probe is never ready.
            let names = [
                "edge",
                "guard",
                "cache",
                "background",
                "origin",
                "hop",
                "connections",
            ];
            names.into_iter().fold(overlay, |overlay, name| {
                overlay.patch("EnvoyFilter", &format!("sluice-{name}"), &remove)
            })
        })
        .start()
        .await;
    gateway.bucket.put_stamped("a.bin", 1, 20_000).await;
    for asked in 1..=2 {
        let refused = gateway
            .send("GET", "/a.bin", &[("host", &gateway.host())])
            .await;
        assert_eq!(refused.status, 403, "{refused}");
        assert_eq!(refused.cache_status(), "", "{refused}");
        assert_eq!(gateway.fetches("a.bin"), asked);
    }
}

#[tokio::test]
async fn a_bucket_in_the_cluster_is_served_and_asked_once_for_each_object() {
    let gateway = Gateway::in_cluster("in-cluster").await.start().await;
    gateway.bucket.put_stamped("a.bin", 1, 20_000).await;
    stampede(gateway.http(), 50, "/a.bin")
        .await
        .same_object("/a.bin");
    gateway.hit("/a.bin").await;
    assert_eq!(gateway.bucket.count("a.bin"), 1);
    // The guards name the bucket: they let no request reach the objects of another bucket, whatever the filter does.
    let configuration = gateway.pod.configuration().await.to_string();
    assert!(configuration.contains(&format!("/{}/(?:", gateway.bucket.name())));
}

#[tokio::test]
async fn kubernetes_gateway_api_serves_the_same() {
    let gateway = Gateway::builder("sluice").await.gateway_api().start().await;
    gateway.bucket.put_stamped("a.bin", 1, 20_000).await;
    let _ = gateway.get("/a.bin").await.stamp("/a.bin");
    gateway.hit("/a.bin").await;
    assert_eq!(gateway.fetches("a.bin"), 1);
}

#[tokio::test]
async fn a_certificate_that_is_not_the_buckets_is_refused() {
    let gateway = Gateway::builder("distrust").await;
    let trust = |file: &str| json!([{"op": "replace", "path": "/spec/trafficPolicy/tls/caCertificates", "value": file}]);
    let certificate = Certificate::new();
    let another = certificate.cert().display().to_string();
    let gateway = gateway
        .with(|overlay| overlay.patch("DestinationRule", "sluice-bucket", &trust(&another)))
        .start()
        .await;
    gateway.bucket.put_stamped("a.bin", 1, 20_000).await;
    let refused = gateway.get("/a.bin").await;
    assert_eq!(refused.status, 503, "{refused}");
    assert_eq!(gateway.fetches("a.bin"), 0);
    assert_eq!(gateway.front.names(), Vec::<String>::new());
}

/// Returns the names of an HTTP connection manager's filters.
fn filters(manager: &Value) -> Vec<&str> {
    let filters = manager["http_filters"].as_array().unwrap().iter();
    filters
        .map(|filter| filter["name"].as_str().unwrap())
        .collect()
}

/// Returns the connection managers of all of Envoy's listeners, with the listener's name.
fn managers(configuration: &Value) -> Vec<(&str, &Value)> {
    let dump = configuration["configs"].as_array().unwrap().iter();
    let listeners = dump
        .filter_map(|part| part["dynamic_listeners"].as_array())
        .flatten();
    let listeners = listeners.map(|listener| &listener["active_state"]["listener"]);
    listeners
        .flat_map(|listener| {
            let chains = listener["filter_chains"].as_array().unwrap().iter();
            let managers = chains
                .map(|chain| &chain["filters"].as_array().unwrap().last().unwrap()["typed_config"]);
            managers.map(|manager| (listener["name"].as_str().unwrap(), manager))
        })
        .collect()
}

/// Checks the order of the filters of a listener for clients, and how the listener normalizes paths.
fn assert_in_order(name: &str, manager: &Value) {
    let filters = filters(manager);
    let place = |name: &str| filters.iter().position(|filter| *filter == name);
    let early = &manager["early_header_mutation_extensions"];
    assert_eq!(early[0]["name"], "strip_internal_headers", "{name}");
    let authorization = place("envoy.filters.http.rbac").unwrap();
    let last = &filters[filters.len() - 4..];
    let expected = ["sluice.edge", "guard", "cache", "envoy.filters.http.router"];
    assert_eq!(last, expected, "{name}: {filters:?}");
    assert!(authorization < filters.len() - 4, "{name}: {filters:?}");
    assert_eq!(manager["normalize_path"], true, "{name}");
    assert_eq!(manager["merge_slashes"], true, "{name}");
    let escaped_slashes = &manager["path_with_escaped_slashes_action"];
    assert_eq!(escaped_slashes, "REJECT_REQUEST", "{name}");
}

#[tokio::test]
async fn the_filter_stands_behind_istios_authorization_and_before_the_cache() {
    let gateway = Gateway::builder("order").await.start().await;
    deny(&gateway, "order", "/no");
    eventually("authorization", async || {
        gateway.get("/no").await.status == 403
    })
    .await;
    let configuration = gateway.pod.configuration().await;
    let managers = managers(&configuration);
    let clients: Vec<_> = managers
        .iter()
        .filter(|(name, _)| name.contains("_80") || name.contains("_844"))
        .collect();
    let clients: Vec<_> = clients
        .into_iter()
        .filter(|(name, _)| *name != "sluice_health")
        .collect();
    assert_eq!(
        clients.len(),
        2,
        "HTTP and HTTPS: {:?}",
        managers.iter().map(|(name, _)| name).collect::<Vec<_>>()
    );
    for (name, manager) in clients {
        assert_in_order(name, manager);
    }
    let (_, hop) = managers.iter().find(|(name, _)| *name == "origin").unwrap();
    assert_eq!(filters(hop).first(), Some(&"guard"));
    assert_eq!(filters(hop)[filters(hop).len() - 2..], ["sign", "router"]);
    let route = configuration.to_string();
    assert!(route.contains(&format!("outbound|443||{}", gateway.host())));

    // There is one VM on each worker and on the main thread, and the base VM that the others are cloned from.
    gateway.bucket.put_stamped("a.bin", 1, 2_000).await;
    gateway.hit("/a.bin").await;
    assert_eq!(
        gateway
            .pod
            .statistic("wasm.envoy.wasm.runtime.v8.active")
            .await,
        4
    );
}
