// SPDX-License-Identifier: Apache-2.0
//! Envoy's admin interface, as far as the entry point needs it.

use std::collections::BTreeMap;

use ureq::Agent;

use crate::eviction::Usage;
use crate::http;

/// What Envoy says of one of its file-system caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// What it holds, as far as it has put it there or removed it since it last read its folder.
    pub usage: Usage,
    /// Its bound on bytes, by which one cache is told from the next on the same path.
    pub limit_bytes: u64,
    /// How often it was above its bound and has read its folder therefore.
    pub eviction_runs: u64,
}

/// A client of the admin interface.
pub struct Admin {
    client: Agent,
    base: String,
}

impl Admin {
    /// The interface on this port of loopback.
    pub fn new(port: u16) -> Self {
        Self {
            client: http::client(),
            base: format!("http://127.0.0.1:{port}"),
        }
    }

    /// From now on the health path answers 503, and responses close their connections.
    pub fn fail_health_checks(&self) {
        // A lost warning: the edge ends all the same.
        let _ = self
            .client
            .post(format!("{}/healthcheck/fail", self.base))
            .send_empty();
    }

    /// How many requests are under way, the clients' and those to the origin (a fill goes on without its client).
    pub fn active_requests(&self) -> Option<u64> {
        let active = self.stats("(downstream|upstream)_rq_active$")?;
        let ours =
            |name: &str| name.starts_with("http.edge") || name.starts_with("cluster.origin.");
        let ours = active.iter().filter(|(name, _)| ours(name));
        Some(ours.map(|(_, value)| value).sum())
    }

    /// The file-system caches, by their folders as Envoy's configuration spells them.
    pub fn caches(&self) -> Option<BTreeMap<String, CacheStats>> {
        Some(caches(&self.stats("^cache")?))
    }

    /// Envoy's counters and gauges whose names contain what `filter` describes.
    fn stats(&self, filter: &str) -> Option<BTreeMap<String, u64>> {
        let uri = format!("{}/stats?filter={filter}", self.base);
        let mut response = self.client.get(uri).call().ok()?;
        let text = response.body_mut().read_to_string().ok()?;
        let values = text.lines().filter_map(|line| {
            let (name, value) = line.rsplit_once(": ")?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Some(values.collect())
    }
}

/// What statistics such as `cache.size_count.cache_path./var/cache/` say.
fn caches(statistics: &BTreeMap<String, u64>) -> BTreeMap<String, CacheStats> {
    let mut caches: BTreeMap<String, CacheStats> = BTreeMap::new();
    let named = statistics.iter().filter_map(|(name, &value)| {
        let (name, path) = name.strip_prefix("cache.")?.split_once(".cache_path.")?;
        Some((name, path, value))
    });
    for (name, path, value) in named {
        let field: fn(&mut CacheStats) -> &mut u64 = match name {
            "size_bytes" => |cache| &mut cache.usage.bytes,
            "size_count" => |cache| &mut cache.usage.files,
            "size_limit_bytes" => |cache| &mut cache.limit_bytes,
            "eviction_runs" => |cache| &mut cache.eviction_runs,
            _ => continue,
        };
        *field(caches.entry(path.to_owned()).or_default()) = value;
    }
    caches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_told_apart_by_their_folders() {
        let statistics = [
            ("cache.cache_sessions_entries.cache_label.envoy_x", 5),
            ("cache.event.cache_path./a/v1/.event_type.hit", 5),
            ("cache.eviction_runs.cache_path./a/v1/", 2),
            ("cache.size_bytes.cache_path./a/v1/", 7_320),
            ("cache.size_count.cache_path./a/v1/", 5),
            ("cache.size_limit_bytes.cache_path./a/v1/", 9_000),
            ("cache.size_limit_count.cache_path./a/v1/", 300),
            ("cache.size_count.cache_path./a/.cache_path./v1/", 6),
        ];
        let statistics = statistics.map(|(name, value)| (name.to_owned(), value));
        let caches = caches(&BTreeMap::from(statistics));
        let first = CacheStats {
            usage: Usage {
                bytes: 7_320,
                files: 5,
            },
            limit_bytes: 9_000,
            eviction_runs: 2,
        };
        assert_eq!(caches.get("/a/v1/"), Some(&first));
        let other = caches.get("/a/.cache_path./v1/").unwrap();
        assert_eq!((caches.len(), other.usage.files), (2, 6));
    }
}
