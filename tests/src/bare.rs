// SPDX-License-Identifier: Apache-2.0
//! The control: the same Envoy with the same store, and nothing of Sluice.

use crate::PATIENCE;
use crate::client::{self, Client, Response, request};
use crate::edge::tail;
use crate::matrix::{Cell, Medium, Version};
use crate::origin::Origin;
use crate::ports::{free_port, loopback};
use crate::process::Process;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// The Envoy binary: `SLUICE_ENVOY`, else where the Makefile has put it.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn envoy() -> PathBuf {
    let installed = crate::edge::repository().join(".sluice/bin/envoy");
    let binary = std::env::var_os("SLUICE_ENVOY").map_or(installed, PathBuf::from);
    assert!(
        binary.is_file(),
        "no Envoy at {}: run `make test`, or set SLUICE_ENVOY",
        binary.display()
    );
    binary
}

/// Envoy with a cache filter and a cluster. It may die: a control is there to show what it does.
pub struct Bare {
    port: u16,
    process: Process,
    _folder: TempDir,
    _memory: Option<TempDir>,
}

impl Bare {
    /// Starts it before `origin`.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start(origin: &Origin, cell: Cell) -> Self {
        for _ in 0..5 {
            let folder = TempDir::with_prefix("sluice-bare-").unwrap();
            let memory = match cell.store.medium {
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
            let config = folder.path().join("envoy.json");
            std::fs::write(
                &config,
                bootstrap(cell.store.version, &cache, port, origin.address()).to_string(),
            )
            .unwrap();
            let mut command = Command::new(envoy());
            command.args([
                "--disable-hot-restart",
                "--log-level",
                "warning",
                "--concurrency",
            ]);
            command.arg(cell.workers.to_string()).arg("-c").arg(config);
            let process = Process::start(command, &folder.path().join("envoy.log")).unwrap();
            let mut bare = Self {
                port,
                process,
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
                if let Ok(mut client) = Client::try_connect(self.address()).await
                    && client
                        .try_exchange(request("GET", "/healthz", &[]))
                        .await
                        .is_ok_and(|r| r.status == 200)
                {
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

    /// Whether the process still runs.
    pub fn alive(&mut self) -> bool {
        self.process.exited().is_none()
    }

    /// What it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// GET on a connection of its own.
    pub async fn get(&self, target: &str) -> Response {
        client::get(self.address(), target).await
    }
}

fn bootstrap(version: Version, cache: &Path, port: u16, origin: SocketAddr) -> Value {
    let v3 = |name: &str| format!("type.googleapis.com/envoy.extensions.{name}");
    let address =
        |port: u16| json!({"socket_address": {"address": "127.0.0.1", "port_value": port}});
    let file_store = |kind: &str| {
        json!({
            "@type": v3(kind),
            "manager_config": {"thread_pool": {"thread_count": 1}},
            "cache_path": cache,
            "max_cache_size_bytes": 1_073_741_824_u64,
        })
    };
    let (filter, store) = match version {
        Version::V1 => (
            "http.cache.v3.CacheConfig",
            file_store("http.cache.file_system_http_cache.v3.FileSystemHttpCacheConfig"),
        ),
        Version::V2 => (
            "http.cache_v2.v3.CacheV2Config",
            file_store("http.cache_v2.file_system_http_cache.v3.FileSystemHttpCacheV2Config"),
        ),
    };
    let manager = json!({
        "@type": v3("filters.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": "bare",
        "codec_type": "AUTO",
        "route_config": {"virtual_hosts": [{
            "name": "all", "domains": ["*"],
            "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "origin"}}],
        }]},
        "http_filters": [
            {"name": "health", "typed_config": {
                "@type": v3("filters.http.health_check.v3.HealthCheck"),
                "pass_through_mode": false,
                "headers": [{"name": ":path", "string_match": {"exact": "/healthz"}}],
            }},
            {"name": "cache", "typed_config": {
                "@type": v3(&format!("filters.{filter}")),
                "typed_config": store,
            }},
            {"name": "router", "typed_config": {"@type": v3("filters.http.router.v3.Router")}},
        ],
    });
    json!({
        "static_resources": {
            "listeners": [{
                "name": "bare",
                "address": address(port),
                "filter_chains": [{"filters": [{"name": "hcm", "typed_config": manager}]}],
            }],
            "clusters": [{
                "name": "origin",
                "connect_timeout": "2s",
                "circuit_breakers": {"thresholds": [{
                    "max_connections": 65_536, "max_pending_requests": 65_536, "max_requests": 65_536,
                }]},
                "load_assignment": {"cluster_name": "origin", "endpoints": [{"lb_endpoints": [
                    {"endpoint": {"address": {"socket_address": {
                        "address": origin.ip().to_string(), "port_value": origin.port(),
                    }}}},
                ]}]},
            }],
        },
    })
}
