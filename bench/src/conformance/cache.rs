// SPDX-License-Identifier: Apache-2.0
//! The caches that the suite tests.

use crate::machine;
use crate::peers::conforming::{APACHE, HAPROXY, NGINX, SQUID, TRAFFIC_SERVER, VARNISH};
use crate::peers::{Peer, Recipe, WORKERS};
use sluice_tests::bare::Bare;
use sluice_tests::conformance::{Between, Outcomes, Suite};
use sluice_tests::edge::store::Store;
use sluice_tests::machine::tool;
use std::process::Command;

/// A cache, with its variant of Sluice's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cache {
    /// Sluice with default settings.
    Sluice,
    /// Sluice with one worker, which has a hot copy of each response that may have one.
    Hot,
    /// Sluice without hot copies.
    Cold,
    /// Sluice, restarted between the first request of a test and the second.
    Restarted,
    /// Envoy's cache filter, without Sluice's.
    Bare,
    Apache,
    Haproxy,
    Nginx,
    Squid,
    TrafficServer,
    Varnish,
}

/// The caches with their names for the command line and for the tables.
const CACHES: [(Cache, &str, &str); 11] = [
    (Cache::Sluice, "sluice", "Sluice"),
    (Cache::Hot, "hot", "Sluice, hot copies"),
    (Cache::Cold, "cold", "Sluice, `HOT_BYTES=0`"),
    (Cache::Restarted, "restarted", "Sluice, restarted"),
    (Cache::Bare, "bare", "bare Envoy"),
    (Cache::Apache, "apache", "Apache httpd"),
    (Cache::Haproxy, "haproxy", "HAProxy"),
    (Cache::Nginx, "nginx", "nginx"),
    (Cache::Squid, "squid", "Squid"),
    (Cache::TrafficServer, "trafficserver", "Traffic Server"),
    (Cache::Varnish, "varnish", "Varnish"),
];

impl Cache {
    /// The caches that `wanted` names, separated by spaces, or all of them.
    ///
    /// # Errors
    /// When a name is unknown.
    pub fn named(wanted: &str) -> Result<Vec<Self>, String> {
        let names = || CACHES.iter().map(|(cache, name, _)| (*cache, *name));
        if wanted.trim().is_empty() {
            return Ok(names().map(|(cache, _)| cache).collect());
        }
        let find = |word: &str| {
            let known: Vec<_> = names().map(|(_, name)| name).collect();
            let found = names().find(|(_, name)| *name == word);
            found
                .map(|(cache, _)| cache)
                .ok_or_else(|| format!("CACHES: {word:?} is none of these: {}", known.join(", ")))
        };
        wanted.split_whitespace().map(find).collect()
    }

    /// Its name in tables.
    pub fn title(self) -> &'static str {
        let mut caches = CACHES.iter();
        let own = caches.find(|(cache, ..)| *cache == self);
        own.map_or("", |(.., title)| title)
    }

    /// Whether it is a cache of another project.
    pub const fn is_peer(self) -> bool {
        self.recipe().is_some()
    }

    /// Whether it is Sluice with other settings than the default ones.
    pub const fn is_variant(self) -> bool {
        matches!(self, Self::Hot | Self::Cold | Self::Restarted)
    }

    const fn recipe(self) -> Option<Recipe> {
        Some(match self {
            Self::Apache => APACHE,
            Self::Haproxy => HAPROXY,
            Self::Nginx => NGINX,
            Self::Squid => SQUID,
            Self::TrafficServer => TRAFFIC_SERVER,
            Self::Varnish => VARNISH,
            Self::Sluice | Self::Hot | Self::Cold | Self::Restarted | Self::Bare => return None,
        })
    }

    /// Its version.
    pub fn version(self) -> String {
        match self.recipe() {
            Some(recipe) => machine::version(&mut recipe.version()),
            None if self == Self::Bare => {
                machine::version(Command::new(tool::envoy()).arg("--version"))
            }
            None => env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Starts the cache and runs the suite against it; `None` if it is not installed.
    pub async fn outcomes(self, suite: &Suite) -> Option<Outcomes> {
        let nothing = async || {};
        match self.recipe() {
            Some(recipe) => {
                let peer: Peer = recipe.start(suite.origin).await?;
                Some(suite.run(peer.address, Between::Nothing, nothing).await)
            }
            None if self == Self::Bare => {
                let origin = format!("http://{}", suite.origin);
                let bare = Bare::before(&origin, Store::V1_DISK, WORKERS).await;
                Some(suite.run(bare.address(), Between::Nothing, nothing).await)
            }
            None => Some(self.of_sluice(suite).await),
        }
    }

    async fn of_sluice(self, suite: &Suite) -> Outcomes {
        let edge = match self {
            Self::Hot => suite.edge().workers(1),
            Self::Cold => suite.edge().env("SLUICE_HOT_BYTES", "0"),
            _ => suite.edge(),
        };
        let mut edge = edge.start().await;
        let address = edge.address();
        let between = match self {
            Self::Hot => Between::Hit,
            Self::Restarted => Between::Pause,
            _ => Between::Nothing,
        };
        let outcomes = suite.run(address, between, async || edge.restart().await);
        let outcomes = outcomes.await;
        if self == Self::Hot {
            let hits = edge.counter("sluice_hot_hits").await;
            eprintln!("{}: {hits} responses were hot copies", self.title());
        }
        outcomes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cache_has_a_name() {
        for (cache, name, title) in CACHES {
            assert_eq!(Cache::named(name), Ok(vec![cache]));
            assert_eq!(cache.title(), title);
        }
        assert_eq!(Cache::named("").unwrap().len(), CACHES.len());
    }

    #[test]
    fn an_unknown_name_is_an_error_that_says_which_there_are() {
        let error = Cache::named("sluice ngingx").unwrap_err();
        assert!(
            error.contains("\"ngingx\"") && error.contains("nginx,"),
            "{error}"
        );
    }
}
