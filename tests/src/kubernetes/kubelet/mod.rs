// SPDX-License-Identifier: Apache-2.0
//! A kubelet that runs the containers of pods as processes, in the file system of their image. Each pod has an address
//! of the network of the test in place of a separate network, and its memory is not bounded.

mod container;
mod logs;
mod pod;
mod probes;
mod status;
mod volumes;

use super::api::Api;
use super::dns;
use crate::eventually;
use crate::image::container::Container as Image;
use crate::machine::process;
use crate::mesh::cluster::Cluster;
use crate::server::background::Background;
use logs::Logs;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// The networks of Services and of pods, for [`is_own_of_root`](crate::machine::network::is_own_of_root).
pub const NETWORKS: [&str; 2] = ["10.0.0.1/24", "10.1.0.1/24"];
/// The nodes. Each is in a different zone.
const NODES: [&str; 2] = ["node-0", "node-1"];
/// The time between two looks at the pods. A look is a list, which is simpler than a watch.
const PERIOD: Duration = Duration::from_millis(100);

/// The parts of the kubelet that all pods use.
struct Host {
    api: Api,
    image: Arc<Image>,
    /// The last byte of the next pod's address.
    next: AtomicU8,
    running: Mutex<BTreeMap<Name, Running>>,
}

/// The namespace and the name of a pod.
type Name = [String; 2];

/// A pod that has been started.
struct Running {
    /// The process of its container.
    pid: u32,
    log: PathBuf,
}

/// A running kubelet for all nodes. Dropping it ends its pods at once.
pub struct Kubelet {
    host: Arc<Host>,
    _pods: Background,
    _logs: Logs,
    _names: Background,
}

impl Kubelet {
    /// Starts a kubelet, which runs every pod in this image, with the DNS of the cluster, and waits until pods can be
    /// scheduled to its nodes.
    pub async fn start(cluster: &Cluster, api: Api, image: Arc<Image>) -> Self {
        let host = Arc::new(Host {
            api,
            image,
            next: AtomicU8::new(2),
            running: Mutex::default(),
        });
        let logs = Logs::start(Arc::clone(&host));
        for (number, node) in NODES.into_iter().enumerate() {
            let zone = format!("zone-{number}");
            let labels =
                json!({"kubernetes.io/hostname": node, "topology.kubernetes.io/zone": zone});
            let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": labels}});
            cluster.apply(&object.to_string());
            let status = status::of_node(logs.port());
            api.patch(&format!("/api/v1/nodes/{node}/status"), &status)
                .await;
        }
        eventually("two nodes without a taint", async || {
            let nodes = api.list("/api/v1/nodes").await.unwrap_or_default();
            let free = nodes.iter().filter(|node| node["spec"]["taints"].is_null());
            free.count() == NODES.len()
        })
        .await;
        let pods = Background::start("kubelet", run(Arc::clone(&host)));
        Self {
            host,
            _pods: pods,
            _logs: logs,
            _names: dns::start(api),
        }
    }

    /// Ends all processes of a pod's container by SIGKILL, and waits until they have ended. The kubelet starts the
    /// container again.
    ///
    /// # Panics
    /// When the pod does not run.
    pub async fn kill(&self, namespace: &str, pod: &str) {
        let name = [namespace, pod].map(str::to_owned);
        let pid = self.host.running.lock().unwrap()[&name].pid;
        let mut family: Vec<_> = process::descendants(pid).into_keys().collect();
        family.push(pid);
        for &pid in &family {
            process::send(pid, libc::SIGKILL);
        }
        let ended = || family.iter().all(|&pid| process::has_ended(pid));
        eventually("the end of the pod", async || ended()).await;
    }
}

impl Host {
    /// An address for a pod.
    fn address(&self) -> IpAddr {
        let last = self.next.fetch_add(1, Ordering::Relaxed);
        assert!(last < 255, "too many pods");
        Ipv4Addr::new(10, 1, 0, last).into()
    }
}

/// The namespace and the name of a pod.
fn name_of(pod: &Value) -> Name {
    ["namespace", "name"].map(|field| pod["metadata"][field].as_str().unwrap().to_owned())
}

/// Runs all pods that are bound to a node.
async fn run(host: Arc<Host>) {
    let mut known: BTreeMap<String, watch::Sender<Value>> = BTreeMap::new();
    loop {
        if let Some(pods) = host.api.list("/api/v1/pods").await {
            let mut present = BTreeMap::new();
            for pod in pods {
                let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
                if let Some(object) = known.remove(&uid) {
                    object.send_replace(pod);
                    present.insert(uid, object);
                } else if NODES.iter().any(|node| pod["spec"]["nodeName"] == *node) {
                    let (object, changes) = watch::channel(pod);
                    tokio::spawn(pod::run(Arc::clone(&host), changes));
                    present.insert(uid, object);
                }
            }
            // The tasks of pods that are gone notice the end of their channel.
            known = present;
        }
        tokio::time::sleep(PERIOD).await;
    }
}
