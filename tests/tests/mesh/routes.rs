// SPDX-License-Identifier: Apache-2.0
//! The cache does not touch the other routes of a gateway: their redirects, direct responses and applications work as
//! without it, also where the cache has an object under the same path.

use serde_json::{Value, json};
use sluice_tests::client::{Client, Response, request, send};
use sluice_tests::eventually;
use sluice_tests::mesh::fleet::Fleet;
use sluice_tests::mesh::gateway::Gateway;
use sluice_tests::mesh::kustomize::changed_policy;
use sluice_tests::origin::{Origin, Reply};
use std::net::SocketAddr;

/// Paths of the other routes. The bucket has objects under the same paths.
const PATHS: [&str; 3] = ["/old", "/teapot", "/api/a"];

/// An application that answers GET and POST.
async fn application() -> Origin {
    let application = Origin::start().ready().await;
    application.on("/api/*", Reply::text("by the application"));
    application
}

/// A redirect, a direct response and an application beside the route to the bucket, for these hosts.
fn other_routes(namespace: &str, hosts: &[&str], application: &Origin) -> Value {
    let entry = json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "ServiceEntry",
        "metadata": {"name": "application", "namespace": namespace},
        "spec": {
            "hosts": ["application.test"],
            "exportTo": ["."],
            "location": "MESH_EXTERNAL",
            "resolution": "STATIC",
            "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}],
            "endpoints": [{
                "address": "127.0.0.1",
                "ports": {"http": application.address().port()},
            }],
        },
    });
    let routes = json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": "others", "namespace": namespace},
        "spec": {
            "hosts": hosts,
            "gateways": ["sluice"],
            "http": [
                {"match": [{"uri": {"exact": "/old"}}], "redirect": {"uri": "/new"}},
                {
                    "match": [{"uri": {"exact": "/teapot"}}],
                    "directResponse": {"status": 418, "body": {"string": "short and stout"}},
                },
                {
                    "match": [{"uri": {"prefix": "/api"}}],
                    "route": [{"destination": {"host": "application.test", "port": {"number": 80}}}],
                },
            ],
        },
    });
    json!({"apiVersion": "v1", "kind": "List", "items": [entry, routes]})
}

/// Sends requests to each of the other routes, and checks that the cache takes no part in them.
async fn assert_untouched(gateway: SocketAddr, headers: &[(&str, &str)], application: &Origin) {
    let get = async |path: &str| send(gateway, "GET", path, headers).await;
    eventually("the other routes", async || get("/old").await.status == 301).await;
    let moved = get("/old?a=b").await;
    assert_eq!(moved.status, 301, "{moved}");
    assert!(moved.header("location").ends_with("/new?a=b"), "{moved}");
    for method in ["GET", "HEAD", "POST"] {
        let told = send(gateway, method, "/teapot", headers).await;
        assert_eq!((told.status, told.cache_status()), (418, ""), "{told}");
    }
    let before = application.requests().all().len();
    let target = "/api/a?y=1&%61=2";
    for method in ["GET", "GET", "POST"] {
        let answer = send(gateway, method, target, headers).await;
        assert_eq!(answer.body, b"by the application", "{answer}");
        assert_eq!(answer.cache_status(), "", "{answer}");
    }
    let requests = application.requests().all().split_off(before);
    let seen: Vec<_> = requests
        .iter()
        .map(|request| (request.method.as_str(), request.target.as_str()))
        .collect();
    assert_eq!(seen, [("GET", target), ("GET", target), ("POST", target)]);
    for request in requests {
        let internal = request.headers.any_with_prefix("x-sluice-");
        assert!(!internal, "{request:?}");
    }
}

/// Stores the objects whose paths will belong to other routes.
async fn store(gateway: &Gateway) {
    for path in PATHS {
        let key = path.trim_start_matches('/');
        gateway.bucket.put_stamped(key, 1, 2_000).await;
        gateway.hit(path).await;
    }
}

#[tokio::test]
async fn other_routes_are_as_without_a_cache_whatever_it_has() {
    let application = application().await;
    let gateway = Gateway::builder("routes").await.start().await;
    store(&gateway).await;
    gateway.bucket.put_stamped("a.bin", 1, 2_000).await;
    gateway.apply(&other_routes("routes", &["*"], &application).to_string());
    assert_untouched(gateway.http(), &[], &application).await;
    // The bucket's own route still works.
    gateway.hit("/a.bin").await;
    assert_eq!(gateway.fetches("a.bin"), 1);
    for name in ["server.envoy_bug_failures", "wasmcustom.sluice_host_errors"] {
        assert_eq!(gateway.pod.statistic(name).await, 0, "{name}");
    }
}

/// `tls.httpsRedirect: true` of a server of Istio's Gateway.
#[tokio::test]
async fn a_redirect_to_https_is_one_for_what_the_cache_has_and_has_not() {
    let gateway = Gateway::builder("to-https").await.start().await;
    gateway.bucket.put_stamped("cold.bin", 1, 2_000).await;
    gateway.bucket.put_stamped("a.bin", 1, 2_000).await;
    let hit = gateway.hit("/a.bin").await;
    let redirect =
        json!([{"op": "add", "path": "/spec/servers/0/tls", "value": {"httpsRedirect": true}}]);
    let overlay = gateway.overlay.clone();
    let overlay = overlay.patch("Gateway", "sluice", &redirect);
    gateway.apply(&overlay.build());
    eventually("the redirect", async || {
        gateway.get("/a.bin").await.status == 301
    })
    .await;
    for path in ["/a.bin", "/cold.bin", "/missing"] {
        for method in ["GET", "HEAD", "POST"] {
            let moved = gateway.send(method, path, &[]).await;
            assert_eq!(moved.status, 301, "{method} {path}: {moved}");
            let location = format!("https://edge.test{path}");
            assert_eq!(moved.header("location"), location, "{moved}");
        }
    }
    let secure = over_tls(&gateway, "/a.bin").await;
    assert_eq!(secure.body, hit.body);
    assert!(secure.is_hit(), "{secure}");
    assert_eq!(gateway.fetches("a.bin"), 1);
    assert_eq!(gateway.fetches("cold.bin"), 0);
}

/// Sends GET over HTTPS.
async fn over_tls(gateway: &Gateway, path: &str) -> Response {
    let stream = gateway
        .certificate
        .connect(gateway.https(), &["http/1.1"], rustls::ALL_VERSIONS)
        .await
        .unwrap();
    Client::on(stream)
        .exchange(request("GET", path, &[("host", "edge.test")]))
        .await
}

#[tokio::test]
async fn other_routes_of_a_fleets_gateways_are_as_without_it() {
    let application = application().await;
    let fleet = Fleet::builder("fleet-routes").await.of(1, 1).start().await;
    for path in PATHS {
        let key = path.trim_start_matches('/');
        fleet.bucket.put_stamped(key, 1, 2_000).await;
        fleet.hit(path).await;
    }
    fleet.bucket.put_stamped("a.bin", 1, 2_000).await;
    fleet.apply(&other_routes("fleet-routes", &["*"], &application).to_string());
    assert_untouched(fleet.http(0), &[], &application).await;
    fleet.hit("/a.bin").await;
    assert_eq!(fleet.fetches("a.bin"), 1);
}

/// Hosts of a site, in place of `*`.
const HOSTS: [&str; 2] = ["www.example.com", "cdn.example.com"];

/// Sends requests under each host, with and without a port, and checks that one object is served and fetched once.
async fn assert_served_under_hosts(gateway: &Gateway, authority: &str) {
    let get = async |host: &str, path: &str| gateway.send("GET", path, &[("host", host)]).await;
    gateway.bucket.put_stamped("a.bin", 1, 2_000).await;
    eventually("the route", async || {
        get(HOSTS[0], "/none").await.cache_status() != ""
    })
    .await;
    let first = get(HOSTS[0], "/a.bin").await;
    let _ = first.stamp("/a.bin");
    for host in ["www.example.com", "www.example.com:8080", "CDN.example.com"] {
        eventually("a hit", async || get(host, "/a.bin").await.is_hit()).await;
    }
    let head = gateway.send("HEAD", "/a.bin", &[("host", HOSTS[1])]).await;
    assert_eq!(head.status, 200, "{head}");
    // This request is sent around the store, and has its own spelling.
    let own = [("host", HOSTS[0]), ("range", "bytes=0-9")];
    let part = gateway.send("GET", "/%61.bin", &own).await;
    assert_eq!(part.status, 206, "{part}");
    let requests = gateway.bucket.requests();
    let fetched = requests.matching(|request| request.target.ends_with("/a.bin"));
    assert_eq!(fetched, 1);
    let before = gateway.bucket.requests().total();
    for host in ["other.example.com", authority] {
        let none = get(host, "/a.bin").await;
        assert_eq!(
            (none.status, none.cache_status()),
            (404, ""),
            "{host}: {none}"
        );
    }
    assert_eq!(gateway.bucket.requests().total(), before);
}

/// `hosts: [www.example.com]` in Gateway and VirtualService, and another site's application on the same gateway.
#[tokio::test]
async fn a_site_may_have_hosts_of_its_own() {
    let application = application().await;
    let gateway = Gateway::builder("hosts").await;
    let hosts = json!([{"op": "replace", "path": "/spec/hosts", "value": HOSTS}]);
    let servers = [0, 1].map(|server| {
        json!({
            "op": "replace",
            "path": format!("/spec/servers/{server}/hosts"),
            "value": ["www.example.com", "cdn.example.com", "api.example.com"],
        })
    });
    let gateway = gateway
        .with(|overlay| overlay.patch("VirtualService", "sluice", &hosts))
        .with(|overlay| overlay.patch("Gateway", "sluice", &json!(servers)))
        .start()
        .await;
    assert_served_under_hosts(&gateway, &gateway.host()).await;
    let api = "api.example.com";
    gateway.apply(&other_routes("hosts", &[api], &application).to_string());
    assert_untouched(gateway.http(), &[("host", api)], &application).await;
    store_under(&gateway, HOSTS[0]).await;
    let both = [api, HOSTS[0]];
    gateway.apply(&other_routes("hosts", &both, &application).to_string());
    assert_untouched(gateway.http(), &[("host", HOSTS[0])], &application).await;
    let host = gateway.send("GET", "/a.bin", &[("host", HOSTS[0])]).await;
    assert!(host.is_hit(), "{host}");
}

/// Stores, under this host, the objects whose paths will belong to other routes.
async fn store_under(gateway: &Gateway, host: &str) {
    for path in PATHS {
        let key = path.trim_start_matches('/');
        gateway.bucket.put_stamped(key, 1, 2_000).await;
        eventually("a hit", async || {
            let answer = gateway.send("GET", path, &[("host", host)]).await;
            answer.is_hit()
        })
        .await;
    }
}

/// The bucket's authority has a port, and the bucket's name is in the path.
#[tokio::test]
async fn a_site_before_a_bucket_in_the_cluster_may_have_hosts_of_its_own() {
    let hosts = json!([{"op": "replace", "path": "/spec/hosts", "value": HOSTS}]);
    let gateway = Gateway::in_cluster("hosts-in-cluster").await;
    let gateway = gateway
        .with(|overlay| overlay.patch("VirtualService", "sluice", &hosts))
        .start()
        .await;
    assert_served_under_hosts(&gateway, "minio.minio.svc.cluster.local:9000").await;
}

/// The host is in the key (`key.host`): Envoy selects the route again by the client's host and the bucket's path.
#[tokio::test]
async fn a_host_in_the_key_and_a_route_by_path_serve_the_bucket() {
    let policy = changed_policy("base", |policy| policy["key"]["host"] = true.into());
    let routes = json!([
        {"op": "replace", "path": "/spec/hosts", "value": HOSTS},
        {"op": "add", "path": "/spec/http/0/match", "value": [{"uri": {"exact": "/"}}]},
    ]);
    let gateway = Gateway::builder("key-host").await;
    let gateway = gateway
        .with(|overlay| overlay.policy(&policy))
        .with(|overlay| overlay.patch("VirtualService", "sluice", &routes))
        .start()
        .await;
    gateway.bucket.put_stamped("index.html", 1, 2_000).await;
    for host in HOSTS {
        eventually("a hit", async || {
            let answer = gateway.send("GET", "/", &[("host", host)]).await;
            answer.is_hit()
        })
        .await;
    }
    assert_eq!(gateway.fetches("index.html"), HOSTS.len());
}

/// Kubernetes' Gateway API: host names of an HTTPRoute, and a redirect by another HTTPRoute.
#[tokio::test]
async fn a_route_of_kubernetes_may_have_hosts_of_its_own_and_redirects_beside_it() {
    const NAMESPACE: &str = "http-route";
    let hosts = json!([{"op": "add", "path": "/spec/hostnames", "value": HOSTS}]);
    let service = format!("sluice-gateway.{NAMESPACE}.svc.cluster.local");
    let service = json!([{"op": "replace", "path": "/spec/addresses/0/value", "value": service}]);
    let gateway = Gateway::builder(NAMESPACE).await.gateway_api();
    let gateway = gateway
        .with(|overlay| overlay.patch("HTTPRoute", "sluice", &hosts))
        .with(|overlay| overlay.patch("Gateway", "sluice", &service))
        .start()
        .await;
    assert_served_under_hosts(&gateway, &gateway.host()).await;
    store_under(&gateway, HOSTS[0]).await;
    let redirect = json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "others", "namespace": NAMESPACE},
        "spec": {
            "parentRefs": [{"name": "sluice"}],
            "hostnames": [HOSTS[0]],
            "rules": [{
                "matches": [{"path": {"type": "Exact", "value": "/old"}}],
                "filters": [{
                    "type": "RequestRedirect",
                    "requestRedirect": {"scheme": "https", "statusCode": 301},
                }],
            }],
        },
    });
    gateway.apply(&redirect.to_string());
    let host = [("host", HOSTS[0])];
    eventually("the redirect", async || {
        gateway.send("GET", "/old", &host).await.status == 301
    })
    .await;
    for method in ["GET", "HEAD", "POST"] {
        let moved = gateway.send(method, "/old", &host).await;
        assert_eq!(
            moved.header("location"),
            "https://www.example.com/old",
            "{moved}"
        );
    }
    assert!(gateway.send("GET", "/teapot", &host).await.is_hit());
}
