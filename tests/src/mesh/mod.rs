// SPDX-License-Identifier: Apache-2.0
//! A service mesh on one machine: the real etcd, Kubernetes API server and istiod, and pods. The test acts as the
//! kubelet: it starts each pod's agent with Envoy in a separate folder.

pub mod cluster;
pub mod fleet;
pub mod gateway;
pub mod istiod;
pub mod kustomize;
pub mod pod;
pub mod release;
pub mod tls_front;

use cluster::Cluster;
use istiod::Istiod;
use release::Release;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::OnceCell;

/// The control plane.
pub struct Mesh {
    /// Kubernetes.
    pub cluster: &'static Cluster,
    /// Istio.
    pub istiod: Istiod,
}

impl Mesh {
    /// The control plane that all tests of this process share; each test has its own namespace in it.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Mesh> = OnceCell::const_new();
        SHARED
            .get_or_init(async || {
                let cluster = cluster_with_istio().await;
                let istiod = Istiod::start(cluster, Release::Current, None).await;
                Self { cluster, istiod }
            })
            .await
    }

    /// Two control planes of a separate cluster, `stable` and `canary`, of two releases. Neither is the default.
    pub async fn revisions() -> &'static [Self; 2] {
        static SHARED: OnceCell<[Mesh; 2]> = OnceCell::const_new();
        SHARED
            .get_or_init(async || {
                let cluster = cluster_with_istio().await;
                let stable = Istiod::start(cluster, Release::Current, Some("stable")).await;
                let canary = Istiod::start(cluster, Release::Former, Some("canary")).await;
                [stable, canary].map(|istiod| Self { cluster, istiod })
            })
            .await
    }
}

/// A cluster, for as long as this process lives.
async fn cluster_with_istio() -> &'static Cluster {
    let cluster = Box::leak(Box::new(Cluster::start().await));
    istiod::define(cluster);
    cluster
}

/// A loopback address that no other pod of this machine has, as far as possible.
///
/// # Panics
/// When there are more than 250.
#[must_use]
pub fn pod_address() -> std::net::Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(2);
    let [high, low] = u16::try_from(std::process::id() % 0x1_0000)
        .unwrap()
        .to_be_bytes();
    let last = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(last < 252, "too many pods");
    // The rest of the harness uses 127.0.0.0/16.
    std::net::Ipv4Addr::new(127, high | 1, low, last)
}
