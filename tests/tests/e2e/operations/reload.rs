// SPDX-License-Identifier: Apache-2.0
//! Sites, policies and certificates change while the edge serves. No request fails, no download is cut, and a wrong
//! file changes nothing.

use sluice_tests::client::{Client, request, send};
use sluice_tests::edge::tls::{Certificate, exchange};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::machine::ports::free_port;
use sluice_tests::machine::ports::loopback;
use sluice_tests::machine::tool::module;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tempfile::TempDir;
use tokio::task::JoinSet;

/// The series that shows whether the last reload was accepted, in front of its value.
const ACCEPTED: &str = "sluice_config_last_reload_successful";

/// A file of sites.
struct SitesFile {
    folder: TempDir,
}

impl SitesFile {
    fn new(text: &str) -> Self {
        let file = Self {
            folder: TempDir::with_prefix("sluice-sites-").unwrap(),
        };
        file.put(text);
        file
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("sites.yaml")
    }

    /// Replaces the text of the file atomically.
    fn put(&self, text: &str) {
        replace(&self.path(), text);
    }

    fn edge(&self) -> Builder {
        Builder::new().env("SLUICE_SITES", self.path().to_str().unwrap())
    }
}

fn replace(path: &Path, text: &str) {
    let part = path.with_extension("part");
    fs::write(&part, text).unwrap();
    fs::rename(part, path).unwrap();
}

/// A site in front of an origin. Its responses without caching headers are fresh for `seconds` seconds.
fn site(name: &str, origin: &Origin, seconds: u64) -> String {
    format!(
        "- name: {name}\n  hosts: [{name}.test]\n  origin: {}\n  policy: {{cache: {{ttl: {{default: {seconds}s}}}}}}\n",
        origin.url()
    )
}

fn sites(sites: &[String]) -> String {
    format!("sites:\n{}", sites.concat())
}

/// Makes the edge read its files again, and waits until it has done so.
async fn reload(edge: &mut Edge) {
    let count = |edge: &Edge| edge.log().matches("sluice: reloaded").count();
    let before = count(edge);
    edge.signal(libc::SIGHUP);
    eventually("a reload", async || count(edge) > before).await;
}

async fn get(edge: &Edge, host: &str, target: &str) -> (u16, Vec<u8>) {
    let response = send(edge.address(), "GET", target, &[("host", host)]).await;
    (response.status, response.body)
}

/// A client that requests new objects of a site until `stop` is set.
async fn ask(
    edge: std::net::SocketAddr,
    host: &'static str,
    stop: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
) {
    let mut client = Client::connect(edge).await;
    let mut asked = 0_usize;
    while !stop.load(Ordering::Relaxed) {
        let path = format!("/load{}", asked % 300);
        let response = client
            .exchange(request("GET", &path, &[("host", host)]))
            .await;
        assert_eq!(response.status, 200, "{host}{path}: {response}");
        assert_ne!(response.header("connection"), "close");
        served.fetch_add(1, Ordering::Relaxed);
        asked += 1;
    }
}

#[tokio::test]
async fn sites_come_change_and_go_under_load_and_no_request_fails() {
    let (one, other) = (Origin::start().ready().await, Origin::start().ready().await);
    one.on("/*", Reply::ok(2_000));
    other.on("/*", Reply::ok(3_000));
    let gate = Gate::new();
    one.on("/slow", Reply::ok(400_000).hold_after(50_000, &gate));
    let [a, b] = ["a", "b"].map(|name| site(name, &one, 60));
    let file = SitesFile::new(&sites(&[a.clone(), b.clone()]));
    let mut edge = file.edge().start().await;
    let mut slow = Client::connect(edge.address()).await;
    slow.send(request("GET", "/slow", &[("host", "b.test")]))
        .await
        .unwrap();
    one.wait_for_requests("/slow", 1).await;
    let (stop, served) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let mut load = JoinSet::new();
    for _ in 0..4 {
        let (stop, served) = (Arc::clone(&stop), Arc::clone(&served));
        load.spawn(ask(edge.address(), "a.test", stop, served));
    }
    for round in 0..10 {
        let before = served.load(Ordering::Relaxed);
        let origin = if round % 2 == 0 { &other } else { &one };
        // One site changes its origin and policy, one exists in every other round, and one is removed during its
        // download.
        let mut all = vec![site("a", origin, 61 + round)];
        if round % 2 == 0 {
            all.push(site("c", &other, 60));
        }
        file.put(&sites(&all));
        reload(&mut edge).await;
        assert_eq!(get(&edge, "b.test", "/").await.0, 421);
        let expected = if round % 2 == 0 { 200 } else { 421 };
        assert_eq!(get(&edge, "c.test", "/").await.0, expected, "round {round}");
        let target = format!("/of-round-{round}");
        let size = if round % 2 == 0 { 3_000 } else { 2_000 };
        let (status, body) = get(&edge, "a.test", &target).await;
        assert_eq!((status, body.len()), (200, size), "round {round}");
        eventually("load", async || {
            served.load(Ordering::Relaxed) > before + 100
        })
        .await;
    }
    gate.open();
    let whole = slow.response().await.unwrap();
    assert_eq!((whole.status, whole.body.len()), (200, 400_000));
    stop.store(true, Ordering::Relaxed);
    while let Some(client) = load.join_next().await {
        client.unwrap();
    }
}

/// Envoy's configuration files with the sites.
fn configuration(edge: &Edge) -> [String; 3] {
    let folder = format!("envoy-{}", edge.address().port());
    let files = edge.folder().join("state").join(folder);
    ["edge.yaml", "routes.yaml", "clusters.yaml"]
        .map(|name| fs::read_to_string(files.join(name)).unwrap())
}

#[tokio::test]
async fn what_is_wrong_changes_nothing_and_shows_until_it_is_right() {
    let origin = Origin::start().ready().await;
    origin.on("/*", Reply::ok(100));
    let good = sites(&["a", "b"].map(|name| site(name, &origin, 60)));
    let file = SitesFile::new(&good);
    let mut edge = file.edge().metrics().start().await;
    edge.wait_for_metric(&format!("{ACCEPTED} 1")).await;
    let before = configuration(&edge);
    for (bad, field) in [
        (good.replace("default: 60s", "default: soon"), "ttl"),
        (good.replace("name: b", "name: a"), "name"),
        ("sites: [".to_owned(), "sites.yaml"),
    ] {
        file.put(&bad);
        let lines = edge.log_lines("reload refused").len();
        edge.signal(libc::SIGHUP);
        eventually("a refusal", async || {
            edge.log_lines("reload refused").len() > lines
        })
        .await;
        assert!(
            edge.log_lines("reload refused").concat().contains(field),
            "{field}: {}",
            edge.log()
        );
        edge.wait_for_metric(&format!("{ACCEPTED} 0")).await;
        assert_eq!(get(&edge, "b.test", "/").await.0, 200);
        assert_eq!(configuration(&edge), before);
    }
    file.put(&good);
    reload(&mut edge).await;
    edge.wait_for_metric(&format!("{ACCEPTED} 1")).await;
}

#[tokio::test]
async fn what_envoy_refuses_is_put_back() {
    let origin = Origin::start().ready().await;
    origin.on("/*", Reply::ok(100));
    let file = SitesFile::new(&sites(&[site("a", &origin, 60)]));
    let edge = file
        .edge()
        .metrics()
        .allow_log("rejected")
        .allow_log("Unable to")
        // Envoy does not read the native module again.
        .env("SLUICE_RUNTIME", "wasm")
        .allow_log("wasm");
    let folder = TempDir::new().unwrap();
    let file_of_module = folder.path().join("module");
    fs::copy(module(), &file_of_module).unwrap();
    let mut edge = edge
        .env("SLUICE_WASM", file_of_module.to_str().unwrap())
        .start()
        .await;
    let before = configuration(&edge);
    // Envoy can no longer load the module.
    fs::remove_file(&file_of_module).unwrap();
    file.put(&sites(&["a", "b"].map(|name| site(name, &origin, 61))));
    edge.signal(libc::SIGHUP);
    edge.wait_for_log("reload refused").await;
    edge.wait_for_metric(&format!("{ACCEPTED} 0")).await;
    assert_eq!(configuration(&edge), before);
    assert_eq!(get(&edge, "a.test", "/").await.0, 200);
    assert_eq!(get(&edge, "b.test", "/").await.0, 421);
}

#[tokio::test]
async fn a_policy_that_is_replaced_is_taken_up_by_who_watches() {
    let origin = Origin::start().ready().await;
    origin.on("/*", Reply::ok(100));
    let folder = TempDir::new().unwrap();
    let policy = folder.path().join("policy.yaml");
    replace(&policy, "key: {query: {mode: keep}}\n");
    let edge = Builder::new()
        .env("SLUICE_ORIGIN", origin.url())
        .env("SLUICE_WATCH", "on");
    let edge = edge
        .env("SLUICE_POLICY", policy.to_str().unwrap())
        .start()
        .await;
    assert_eq!(edge.get("/a?b").await.status, 200);
    assert_eq!(origin.count("/a?b"), 1);
    replace(&policy, "key: {query: {mode: drop}}\n");
    edge.wait_for_log("sluice: reloaded: ").await;
    assert_eq!(edge.get("/a?b").await.status, 200);
    assert_eq!(origin.count("/a"), 1);
}

#[tokio::test]
async fn certificates_are_chosen_by_name_and_renewed_under_open_connections() {
    let origin = Origin::start().ready().await;
    origin.on("/*", Reply::ok(100));
    let mut certificates = ["a.test", "b.test"].map(Certificate::named);
    let tls = |name: &str, certificate: &Certificate| {
        let (chain, key) = (certificate.cert(), certificate.key());
        let (chain, key) = (chain.display(), key.display());
        format!(
            "{}  tls: {{certificate: {chain}, key: {key}}}\n",
            site(name, &origin, 60)
        )
    };
    let [a, b] = &certificates;
    let file = SitesFile::new(&sites(&[tls("a", a)]));
    let port = free_port();
    let mut edge = file
        .edge()
        .env("SLUICE_EDGE_TLS_PORT", port.to_string())
        .start()
        .await;
    let address = loopback(port);
    let mut open = a.connect(address, &[], rustls::ALL_VERSIONS).await.unwrap();
    // A site with another certificate is added.
    file.put(&sites(&[tls("a", a), tls("b", b)]));
    reload(&mut edge).await;
    let connect = async |certificate: &Certificate| {
        certificate
            .connect(address, &[], rustls::ALL_VERSIONS)
            .await
    };
    for certificate in &certificates {
        connect(certificate).await.unwrap();
    }
    // Both certificates are renewed, without a signal to the edge.
    for certificate in &mut certificates {
        certificate.renew();
    }
    for certificate in &certificates {
        eventually("the new certificate", async || {
            connect(certificate).await.is_ok()
        })
        .await;
    }
    let asked = request("GET", "/", &[("host", "a.test")]);
    let (head, body) = exchange(&mut open, &asked).await.unwrap();
    assert_eq!((head.word(1), body.len()), ("200", 100));
}
