// SPDX-License-Identifier: Apache-2.0
//! Bare Envoy, for control tests: the same configuration with the same store, without Sluice's filter.

use crate::PATIENCE;
use crate::client::{self, Response};
use crate::edge::log::tail;
use crate::edge::store::{Medium, Store, Version};
use crate::edge::tls::Certificate;
use crate::machine::ports::{free_port, loopback};
use crate::machine::process::Process;
use crate::machine::tool::envoy;
use crate::origin::Origin;
use serde_json::{Value, json};
use sluice::render;
use sluice::settings::Settings;
use std::collections::HashMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Sluice's own configuration with the filter left out. It may die, because a control test shows how it fails.
pub struct Bare {
    port: u16,
    process: Process,
    entries: PathBuf,
    _folder: TempDir,
    _memory: Option<TempDir>,
}

impl Bare {
    /// Starts bare Envoy in front of `origin`.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start(origin: &Origin, store: Store, workers: usize) -> Self {
        Self::launch(&origin.url(), store, workers, &|_| {}).await
    }

    /// Starts bare Envoy in front of `origin` with Envoy's unbounded store in memory, which has no files.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn without_files(origin: &Origin, version: Version, workers: usize) -> Self {
        let store = Store {
            version,
            medium: Medium::Memory,
        };
        let change = |config: &mut Value| {
            let kind = match version {
                Version::V1 => "cache.simple_http_cache.v3.SimpleHttpCacheConfig",
                Version::V2 => "cache_v2.simple_http_cache.v3.SimpleHttpCacheV2Config",
            };
            let kind = format!("type.googleapis.com/envoy.extensions.http.{kind}");
            cache_filter(config)["typed_config"]["typed_config"] = json!({"@type": kind});
        };
        Self::launch(&origin.url(), store, workers, &change).await
    }

    /// Starts bare Envoy in front of `origin` with its whole configuration changed.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn changed(
        origin: &Origin,
        store: Store,
        workers: usize,
        change: &dyn Fn(&mut Value),
    ) -> Self {
        Self::launch(&origin.url(), store, workers, change).await
    }

    /// Starts bare Envoy, with its whole configuration changed, in front of the server at `url`, `http://HOST:PORT`.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn changed_before(
        url: &str,
        store: Store,
        workers: usize,
        change: &dyn Fn(&mut Value),
    ) -> Self {
        Self::launch(url, store, workers, change).await
    }

    /// Starts bare Envoy in front of `origin` with a second listener, on this port and with this certificate.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn with_tls(
        origin: &Origin,
        store: Store,
        workers: usize,
        certificate: &Certificate,
        port: u16,
    ) -> Self {
        let add = |config: &mut Value| certificate.add_listener(config, port);
        Self::launch(&origin.url(), store, workers, &add).await
    }

    /// Starts bare Envoy in front of the server at `url`, `http://HOST:PORT`. It stores responses that vary as
    /// buckets' do.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn before(url: &str, store: Store, workers: usize) -> Self {
        let allow = |config: &mut Value| {
            let names = ["origin", "accept-encoding"];
            let names = names.map(|name| json!({"exact": name, "ignore_case": true}));
            cache_filter(config)["typed_config"]["allowed_vary_headers"] = json!(names);
        };
        Self::launch(url, store, workers, &allow).await
    }

    async fn launch(url: &str, store: Store, workers: usize, change: &dyn Fn(&mut Value)) -> Self {
        for _ in 0..5 {
            let folder = TempDir::with_prefix("sluice-bare-").unwrap();
            let memory = match store.medium {
                Medium::Memory => {
                    Some(TempDir::with_prefix_in("sluice-bare-", "/dev/shm").unwrap())
                }
                Medium::Disk => None,
            };
            let cache = memory
                .as_ref()
                .map_or_else(|| folder.path().join("cache"), |dir| dir.path().to_owned());
            std::fs::create_dir_all(&cache).unwrap();
            let port = free_port();
            let text = configuration(store, workers, &cache, port, url);
            let mut document: Value = serde_saphyr::from_str(&text).unwrap();
            // No test uses its admin interface.
            document["admin"].take();
            if store.version == Version::V2 {
                put_v2_in_place(&mut document);
            }
            change(&mut document);
            let config = folder.path().join("envoy.json");
            std::fs::write(&config, document.to_string()).unwrap();
            let mut command = Command::new(envoy());
            command.args([
                "--disable-hot-restart",
                "--log-level",
                "warning",
                "--concurrency",
            ]);
            command.arg(workers.to_string()).arg("-c").arg(config);
            let process = Process::start(command, &folder.path().join("envoy.log")).unwrap();
            let mut bare = Self {
                port,
                process,
                entries: cache,
                _folder: folder,
                _memory: memory,
            };
            if bare.came_up().await {
                return bare;
            }
            assert!(
                bare.log().contains("in use"),
                "bare Envoy does not start:\n{}",
                bare.log()
            );
        }
        panic!("five times a port was taken");
    }

    async fn came_up(&mut self) -> bool {
        let up = async {
            while self.alive() {
                if client::is_healthy(self.address(), "/healthz").await {
                    return true;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            false
        };
        let up = tokio::time::timeout(PATIENCE, up).await;
        up.unwrap_or_else(|_| panic!("bare Envoy does not come up:\n{}", tail(&self.log(), 40)))
    }

    /// The listener's address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        loopback(self.port)
    }

    /// The folder of its store's files.
    #[must_use]
    pub fn entries(&self) -> &Path {
        &self.entries
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Whether the process still runs.
    pub fn alive(&mut self) -> bool {
        self.process.exited().is_none()
    }

    /// Log so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Sends a GET on a new connection.
    pub async fn get(&self, target: &str) -> Response {
        client::get(self.address(), target).await
    }
}

/// The HTTP filters of the listener for clients.
fn http_filters(config: &mut Value) -> &mut Vec<Value> {
    let listener = &mut config["static_resources"]["listeners"][0];
    let manager = &mut listener["filter_chains"][0]["filters"][0]["typed_config"];
    manager["http_filters"].as_array_mut().expect("filters")
}

/// The cache filter of the listener for clients.
fn cache_filter(config: &mut Value) -> &mut Value {
    let mut filters = http_filters(config).iter_mut();
    let cache = filters.find(|filter| filter["name"] == "cache");
    cache.expect("a cache filter")
}

/// Puts Envoy's newer cache filter, which Sluice does not use, in the place of the other.
fn put_v2_in_place(config: &mut Value) {
    let filter = "type.googleapis.com/envoy.extensions.filters.http.cache_v2.v3.CacheV2Config";
    let files = "type.googleapis.com/envoy.extensions.http.cache_v2.file_system_http_cache.v3.FileSystemHttpCacheV2Config";
    let config = &mut cache_filter(config)["typed_config"];
    config["@type"] = filter.into();
    config["typed_config"]["@type"] = files.into();
}

fn configuration(store: Store, workers: usize, cache: &Path, port: u16, url: &str) -> String {
    let variables = HashMap::from([
        ("SLUICE_ORIGIN", url.to_owned()),
        ("SLUICE_EDGE_PORT", port.to_string()),
        ("SLUICE_CACHE", store.medium.to_string()),
        ("SLUICE_CACHE_DIR", cache.display().to_string()),
        ("SLUICE_CONCURRENCY", workers.to_string()),
        ("SLUICE_ACCESS_LOG", "off".to_owned()),
        ("SLUICE_ENVOY", envoy().display().to_string()),
        ("SLUICE_STATE", cache.display().to_string()),
    ]);
    let mut settings =
        Settings::from_lookup(&|name| variables.get(name).map(OsString::from)).unwrap();
    settings.filter = false;
    let origin = settings.origin.clone().expect("an origin");
    render::render(&settings, &origin, cache).unwrap()
}
