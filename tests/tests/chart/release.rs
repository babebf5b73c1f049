// SPDX-License-Identifier: Apache-2.0
//! A release of the chart in a whole cluster, in front of a private bucket of MinIO.

use crate::sets::least_with;
use serde_json::{Value, json};
use sluice_tests::bucket::{Bucket, REGION};
use sluice_tests::chart::{RELEASE, helm, installer};
use sluice_tests::client::load::{Load, Plan};
use sluice_tests::client::{self, Response};
use sluice_tests::eventually;
use sluice_tests::image::container::Container;
use sluice_tests::kubernetes::api::{self, Api};
use sluice_tests::kubernetes::balancer::Balancer;
use sluice_tests::kubernetes::controllers;
use sluice_tests::kubernetes::kubelet::{Kubelet, NETWORKS};
use sluice_tests::machine::network;
use sluice_tests::machine::process::Process;
use sluice_tests::mesh::cluster::Cluster;
use std::net::SocketAddr;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The namespace of the release, whose pods must be restricted.
pub const NAMESPACE: &str = "edge";
/// The name of its objects.
pub const NAME: &str = "www-sluice";
/// The time that a test of a whole cluster may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(400);
/// Requests per second of a load.
const RATE: u32 = 100;

/// Whether this process has the network of a cluster. If it does not, this test has run in another process that has,
/// and the caller has to return.
#[must_use]
pub fn is_in_cluster() -> bool {
    network::is_own_of_root(&NETWORKS, PATIENCE)
}

/// A release in a cluster. Dropping it ends the cluster.
pub struct Release {
    // Declared in the order in which they end.
    pub kubelet: Kubelet,
    _programs: [Process; 2],
    _proxy: Process,
    pub cluster: Cluster,
    api: Api,
    pub bucket: Bucket,
    changes: Value,
    volumes: TempDir,
}

/// The policy of a site whose responses name this edition.
pub fn policy(edition: &str) -> Value {
    let rule = json!({"match": ["/*"], "headers": {"x-edition": edition}});
    json!({"www.yaml": {"cache": {"ttl": {"default": "1h"}}, "rules": [rule]}})
}

impl Release {
    /// Installs the chart with these changes of the values in a new cluster.
    pub async fn install(changes: &Value) -> Self {
        let release = Self::plan(changes).await;
        release.begin();
        release
    }

    /// Starts a cluster for a release with these changes of the values.
    pub async fn plan(changes: &Value) -> Self {
        let cluster = Cluster::start().await;
        let programs = controllers::start(&cluster);
        let (proxy, api) = api::open(&cluster).await;
        let kubelet = Kubelet::start(&cluster, api, Container::edge().await).await;
        let release = Self {
            kubelet,
            _programs: programs,
            _proxy: proxy,
            cluster,
            api,
            bucket: Bucket::new().await,
            changes: changes.clone(),
            volumes: TempDir::with_prefix("sluice-volumes-").unwrap(),
        };
        release.prepare();
        release
    }

    /// Installs the chart by `helm install --wait`.
    pub fn begin(&self) {
        let output = self.helm("install", &json!({}));
        assert!(output.status.success(), "{}", both(&output));
    }

    /// Creates the namespace, the Secret of the bucket and a volume on each node.
    fn prepare(&self) {
        let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
        let metadata = json!({"name": NAMESPACE, "labels": labels});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        self.cluster.apply(&namespace.to_string());
        let server = self.bucket.server();
        let keys = [
            ("BUCKET_KEY_ID", &server.access_key),
            ("BUCKET_SECRET", &server.secret_key),
        ];
        self.create_secret("bucket", &keys);
        for number in 0..2 {
            let folder = self.volumes.path().join(number.to_string());
            // As a new file system has.
            std::fs::create_dir_all(folder.join("lost+found")).unwrap();
            let node = format!("node-{number}");
            let on_node =
                json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
            let affinity =
                json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}});
            let volume = json!({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": format!("disk-{number}")},
                "spec": {
                    "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOncePod"],
                    "local": {"path": folder}, "nodeAffinity": affinity,
                },
            });
            self.cluster.apply(&volume.to_string());
        }
    }

    /// Creates a Secret of these keys.
    pub fn create_secret(&self, name: &str, keys: &[(&str, &String)]) {
        let data: serde_json::Map<_, _> = keys
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.as_str().into()))
            .collect();
        let metadata = json!({"name": name, "namespace": NAMESPACE});
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data});
        self.cluster.apply(&secret.to_string());
    }

    /// The values of the release with these changes.
    fn values(&self, changes: &Value) -> Value {
        let credentials =
            json!({"access_key_id": "BUCKET_KEY_ID", "secret_access_key": "BUCKET_SECRET"});
        let mut values = least_with(&json!({
            "sites": [{
                "name": "www", "origin": format!("s3://{}", self.bucket.name()), "endpoint": self.bucket.endpoint(),
                "region": REGION, "credentials": credentials, "policy": "www.yaml",
            }],
            "policies": policy("first"), "secretEnv": ["bucket"], "cache": {"size": "64Mi", "reserve": "1%"},
            // The shortest start and drain.
            "runtime": "native", "workers": 1, "minDrainSeconds": 4,
        }));
        for changes in [&self.changes, changes] {
            crate::sets::merge(&mut values, changes);
        }
        values
    }

    /// Runs Helm with these changes of the values, and waits until it has done its work.
    pub fn helm(&self, command: &str, changes: &Value) -> Output {
        let kubeconfig = self.cluster.kubeconfig();
        let place = [
            "--kubeconfig",
            kubeconfig.to_str().unwrap(),
            "--namespace",
            NAMESPACE,
        ];
        let arguments = [&[command], &place[..], &["--wait", "--timeout", "100s"]].concat();
        helm(&arguments, &self.values(changes))
    }

    /// Runs `helm test`.
    pub fn test(&self) -> Output {
        let mut command = Command::new(installer());
        command.env_clear().env("HOME", self.volumes.path());
        command.args([
            "test",
            RELEASE,
            "--namespace",
            NAMESPACE,
            "--timeout",
            "60s",
        ]);
        command
            .arg("--kubeconfig")
            .arg(self.cluster.kubeconfig())
            .output()
            .unwrap()
    }

    /// Runs `kubectl` in the namespace of the release.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let arguments = [&["--namespace", NAMESPACE], arguments].concat();
        self.cluster.kubectl(&arguments, "")
    }

    /// The pods that serve, by their names: the address of each, and how often its container was started again.
    pub fn pods(&self) -> Vec<(String, SocketAddr, u64)> {
        let list = self.kubectl(&[
            "get",
            "pods",
            "-l",
            "app.kubernetes.io/component=edge",
            "-o",
            "json",
        ]);
        let list: Value = serde_json::from_str(&list).unwrap();
        let pods = list["items"].as_array().unwrap().iter();
        let mut pods: Vec<_> = pods
            .map(|pod| {
                let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
                let status = &pod["status"];
                let address = status["podIP"]
                    .as_str()
                    .unwrap_or("0.0.0.0")
                    .parse()
                    .unwrap();
                let restarts = status["containerStatuses"][0]["restartCount"].as_u64();
                (
                    name,
                    SocketAddr::new(address, 8080),
                    restarts.unwrap_or_default(),
                )
            })
            .collect();
        pods.sort();
        pods
    }

    /// Waits until there are this many pods.
    pub async fn settle(&self, pods: usize) {
        eventually("the end of the former pods", async || {
            self.pods().len() == pods
        })
        .await;
    }

    /// Starts the balancer in front of the pods.
    pub async fn balancer(&self) -> Balancer {
        Balancer::start(self.api, NAMESPACE, NAME).await
    }

    /// Stores `count` objects in the bucket, and returns their targets.
    pub async fn objects(&self, count: usize) -> Vec<String> {
        let mut targets = Vec::new();
        for number in 0..count {
            self.bucket
                .put_stamped(&format!("{number}.bin"), 1, 2_000)
                .await;
            targets.push(format!("/{number}.bin"));
        }
        targets
    }

    /// Replaces all pods of the workload of this kind.
    pub async fn roll_out(&self, kind: &str) {
        let workload = format!("{kind}/{NAME}");
        let former = self.pods();
        self.kubectl(&["rollout", "restart", &workload]);
        self.kubectl(&["rollout", "status", "--timeout=120s", &workload]);
        self.settle(former.len()).await;
        let pods = self.pods();
        assert!(pods.iter().all(|pod| !former.contains(pod)), "{pods:?}");
    }
}

/// A load of GETs of these targets.
pub fn load(address: SocketAddr, targets: &[String], keeps_connections: bool) -> Load {
    Load::start(Plan {
        rate: RATE,
        addresses: vec![address],
        targets: targets.to_vec(),
        keeps_connections,
    })
}

/// Sends requests on kept connections while `change` takes place, and returns the failures.
pub async fn failures_during(
    what: &str,
    address: SocketAddr,
    targets: &[String],
    change: impl AsyncFnOnce(),
) -> Vec<String> {
    let load = load(address, targets, true);
    let begun = Instant::now();
    load.more(100).await;
    change().await;
    load.more(100).await;
    let seen = load.since(begun);
    println!("{what}: {seen}");
    seen.failures
}

/// Waits until a response of this target fulfils a condition.
pub async fn until(address: SocketAddr, target: &str, condition: impl Fn(&Response) -> bool) {
    eventually(target, async || {
        condition(&client::get(address, target).await)
    })
    .await;
}

/// Both outputs of a command.
pub fn both(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}
