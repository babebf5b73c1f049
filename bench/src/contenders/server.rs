// SPDX-License-Identifier: Apache-2.0
//! The servers that are put before one bucket, each started anew for each run: cold, and with its own peak of memory.

use crate::machine::usage;
use crate::peers::haproxy;
use crate::peers::nginx::{self, Lock};
use crate::peers::varnish;
use sluice_tests::bare::Bare;
use sluice_tests::edge::Edge;
use sluice_tests::matrix::{Cell, Medium, Store};
use sluice_tests::minio::Bucket;
use sluice_tests::proxy::Proxy;
use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// How long a request is on its way to the bucket: S3 takes 100 to 200 ms for a small object, as its documentation says.
/// A bucket on the same machine answers in one, and hardly ever do two clients ask for an object within that.
pub const DISTANCE: Duration = Duration::from_millis(100);

/// The workers of each.
pub const WORKERS: usize = 2;

/// A server with its way of caching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The bucket itself, and nothing before it.
    Bucket,
    /// nginx, by how it coalesces.
    Nginx(Lock),
    /// Varnish as it comes.
    Varnish,
    /// HAProxy with its cache, which does not coalesce.
    Haproxy,
    /// Envoy's cache filter without Sluice's.
    Bare(Store),
    /// Sluice.
    Sluice(Medium),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bucket => f.write_str("the bucket itself"),
            Self::Nginx(Lock::On) => f.write_str("nginx, lock"),
            Self::Nginx(Lock::Off) => f.write_str("nginx, no lock"),
            Self::Nginx(Lock::Timeout) => f.write_str("nginx, lock 400 ms"),
            Self::Varnish => f.write_str("Varnish"),
            Self::Haproxy => f.write_str("HAProxy"),
            Self::Bare(store) => write!(f, "bare Envoy {store}"),
            Self::Sluice(medium) => write!(f, "Sluice {medium}"),
        }
    }
}

/// One that runs before a bucket.
pub struct Server {
    /// Where the objects are: `http://ADDRESS` and the path up to them.
    pub base: String,
    /// What counts the requests to the bucket.
    proxy: Proxy,
    /// Its processes, without those below them.
    pids: Vec<u32>,
    // Ends with it.
    _running: Box<dyn Any>,
}

impl Kind {
    /// Starts it before `bucket`, whose objects everyone may read; `None` where it is not installed.
    pub async fn start(self, bucket: &Bucket) -> Option<Server> {
        let proxy = Proxy::distant(bucket.minio().address(), DISTANCE);
        let origin = proxy.address();
        let below = format!("/{}", bucket.name());
        let peer = |address: SocketAddr| format!("http://{address}{below}");
        let (base, pids, running): (_, _, Box<dyn Any>) = match self {
            Self::Bucket => (peer(origin), vec![], Box::new(())),
            Self::Nginx(lock) => {
                let nginx = nginx::start(origin, WORKERS, lock).await?;
                (peer(nginx.address), vec![nginx.pid()], Box::new(nginx))
            }
            Self::Varnish => {
                let varnish = varnish::start(origin).await?;
                (
                    peer(varnish.address),
                    vec![varnish.pid()],
                    Box::new(varnish),
                )
            }
            Self::Haproxy => {
                let haproxy = haproxy::start(origin, WORKERS).await?;
                (
                    peer(haproxy.address),
                    vec![haproxy.pid()],
                    Box::new(haproxy),
                )
            }
            Self::Bare(store) => {
                let cell = Cell {
                    store,
                    workers: WORKERS,
                };
                let bare = Bare::before(&format!("http://{origin}"), cell).await;
                (peer(bare.address()), vec![bare.pid()], Box::new(bare))
            }
            Self::Sluice(medium) => {
                // The private way, as it is meant: requests are signed.
                let edge = Edge::bucket(bucket).env("S3_ENDPOINT", format!("http://{origin}"));
                let edge = edge.medium(medium).workers(WORKERS);
                let edge = edge.env("ACCESS_LOG", "off").start().await;
                let base = format!("http://{}", edge.address());
                (base, vec![edge.envoy_pid()], Box::new(edge))
            }
        };
        Some(Server {
            base,
            proxy,
            pids,
            _running: running,
        })
    }
}

impl Server {
    /// The requests that the bucket has had, and the most for one object.
    pub fn fetches(&self) -> (usize, usize) {
        let mut targets: Vec<_> = self
            .proxy
            .requests()
            .all()
            .into_iter()
            .map(|request| request.target)
            .filter(|target| target.ends_with(".bin"))
            .collect();
        targets.sort_unstable();
        let most = targets.chunk_by(|one, other| one == other).map(<[_]>::len);
        (targets.len(), most.max().unwrap_or(0))
    }

    /// Whether all its processes still run.
    pub fn alive(&self) -> bool {
        self.pids.iter().all(|&pid| usage::alive(pid))
    }

    /// The CPU time that it has taken so far; `None` for the bucket itself, which is not measured.
    pub fn cpu_time(&self) -> Option<Duration> {
        (!self.pids.is_empty()).then(|| usage::cpu_time(&self.pids))
    }

    /// The most memory that it has had, in MiB.
    pub fn peak_mib(&self) -> Option<f64> {
        #[allow(clippy::cast_precision_loss)]
        let mib = usage::peak_kib(&self.pids) as f64 / 1024.0;
        (!self.pids.is_empty()).then_some(mib)
    }
}
