// SPDX-License-Identifier: Apache-2.0
//! An edge with two sites: `assets`, whose responses are stored, and `shop`, whose responses have cookies.

use sluice_tests::edge::{Builder, Edge};
use sluice_tests::origin::{Origin, Reply};
use std::time::Duration;
use tempfile::TempDir;

/// The time of the shop's origin, longer than any of `assets`.
pub const SLOW: Duration = Duration::from_millis(300);

/// The edge and its origins.
pub struct Shop {
    pub edge: Edge,
    _assets: Origin,
    pub shop: Origin,
    _folder: TempDir,
}

impl Shop {
    /// Starts an edge with the settings that `change` adds.
    pub async fn start(change: impl FnOnce(Builder) -> Builder) -> Self {
        let assets = Origin::start().ready().await;
        assets.on("/*", Reply::ok(10_000).max_age(600));
        let shop = Origin::start().ready().await;
        let cookie = Reply::ok(100).header("set-cookie", "id=7");
        shop.on("/*", cookie.delay(SLOW));
        let folder = TempDir::with_prefix("sluice-shop-").unwrap();
        let file = folder.path().join("sites.yaml");
        let site = |name: &str, origin: &Origin| {
            format!(
                "- name: {name}\n  hosts: [{name}.test]\n  origin: {}\n",
                origin.url()
            )
        };
        let sites = site("assets", &assets) + &site("shop", &shop);
        std::fs::write(&file, format!("sites:\n{sites}")).unwrap();
        let edge = Builder::new().env("SLUICE_SITES", file.to_str().unwrap());
        Self {
            edge: change(edge).start().await,
            _assets: assets,
            shop,
            _folder: folder,
        }
    }

    /// Sends a GET to a site. Returns the status.
    pub async fn get(&self, site: &str, path: &str) -> u16 {
        let host = format!("{site}.test");
        self.edge.send("GET", path, &[("host", &host)]).await.status
    }

    /// Runs `asked` while clients request `/a` of both sites, one request after another.
    pub async fn while_busy<T>(&self, asked: impl Future<Output = T>) -> T {
        let load = async {
            loop {
                for _ in 0..5 {
                    self.get("assets", "/a").await;
                }
                self.get("shop", "/cart?user=private").await;
            }
        };
        tokio::select! {
            answer = asked => answer,
            () = load => unreachable!("the load has no end"),
        }
    }
}
