// SPDX-License-Identifier: Apache-2.0
//! A service mesh on one machine: etcd, the Kubernetes API server and istiod as they are, and pods whose kubelet is
//! the test: it starts their agent with Envoy in a folder of their own.

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
    /// The control plane that all tests of this process share; each has a namespace of its own in it.
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

    /// Two control planes of one cluster of their own, `stable` and `canary`, of two releases. None is the default.
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

/// A loopback address that no other pod of this machine has, as far as can be.
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
    // 127.0.0.0/16 is where everything else is.
    std::net::Ipv4Addr::new(127, high | 1, low, last)
}
