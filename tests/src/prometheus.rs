// SPDX-License-Identifier: Apache-2.0
//! The real Prometheus with the configuration, rules and alerts of `envoy/observability`.

use crate::client;
use crate::machine::ports::{free_port, loopback};
use crate::machine::process::Process;
use crate::machine::tool::repository;
use crate::{PATIENCE, eventually};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

/// The folder of the configuration, rules, alerts and the dashboard.
#[must_use]
pub fn observability() -> PathBuf {
    repository().join("envoy/observability")
}

/// Path of this program: in the folder of `SLUICE_PROMETHEUS`, else where the Makefile has put it.
///
/// # Panics
/// When it is not there.
fn program(name: &str) -> PathBuf {
    let installed = repository().join(".sluice/bin");
    let folder = std::env::var_os("SLUICE_PROMETHEUS").map_or(installed, PathBuf::from);
    let program = folder.join(name);
    assert!(
        program.is_file(),
        "no {}: run `make test`, or set SLUICE_PROMETHEUS",
        program.display()
    );
    program
}

/// Runs promtool in `envoy/observability`.
///
/// # Panics
/// When it cannot be run.
#[must_use]
pub fn promtool(arguments: &[&str]) -> Output {
    let mut command = Command::new(program("promtool"));
    command.args(arguments).current_dir(observability());
    command.output().unwrap()
}

/// The whole output of promtool for an input.
///
/// # Panics
/// When it cannot be run.
#[must_use]
pub fn promtool_on(arguments: &[&str], input: &str) -> String {
    let file = TempDir::with_prefix("sluice-promtool-").unwrap();
    let path = file.path().join("input");
    std::fs::write(&path, input).unwrap();
    let mut command = Command::new(program("promtool"));
    let command = command.args(arguments).stdin(File::open(path).unwrap());
    let Output { stdout, stderr, .. } = command.output().unwrap();
    String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned()
}

/// A running Prometheus, which scrapes every second unless the caller sets another interval.
pub struct Prometheus {
    address: SocketAddr,
    process: Process,
    // Declared after the process, so that it is removed later.
    _folder: TempDir,
}

impl Prometheus {
    /// Starts it with `prometheus.yaml`, except the targets and the interval.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn scraping(target: SocketAddr) -> Self {
        Self::start("prometheus.yaml", target, 1).await
    }

    /// Starts it with `prometheus.yaml`, and with this many seconds from one scrape to the next.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn scraping_every(target: SocketAddr, seconds: u32) -> Self {
        Self::start("prometheus.yaml", target, seconds).await
    }

    /// Starts it with `prometheus-istio.yaml`, except the discovery of targets and the interval.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn scraping_in_istio(target: SocketAddr) -> Self {
        Self::start("prometheus-istio.yaml", target, 1).await
    }

    async fn start(config: &str, target: SocketAddr, seconds: u32) -> Self {
        let folder = TempDir::with_prefix("sluice-prometheus-").unwrap();
        let text = std::fs::read_to_string(observability().join(config)).unwrap();
        let text = text.replace("_interval: 15s", &format!("_interval: {seconds}s"));
        let mut document: Value = serde_saphyr::from_str(&text).unwrap();
        for file in document["rule_files"].as_array_mut().expect("rules") {
            let path = observability().join(file.as_str().unwrap());
            *file = path.display().to_string().into();
        }
        let job = document["scrape_configs"][0].as_object_mut();
        let job = job.expect("a job");
        job.remove("kubernetes_sd_configs");
        job.remove("relabel_configs");
        let targets = json!([{"targets": [target.to_string()]}]);
        job.insert("static_configs".to_owned(), targets);
        let file = folder.path().join("prometheus.yaml");
        std::fs::write(&file, document.to_string()).unwrap();
        let address = loopback(free_port());
        let mut command = Command::new(program("prometheus"));
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().display()))
            .arg(format!("--web.listen-address={address}"));
        let log = folder.path().join("prometheus.log");
        let process = Process::start(command, &log).unwrap();
        let mut prometheus = Self {
            address,
            process,
            _folder: folder,
        };
        prometheus.come_up().await;
        prometheus
    }

    async fn come_up(&mut self) {
        eventually("a ready Prometheus", async || {
            let ended = self.process.exited();
            assert!(ended.is_none(), "{ended:?}:\n{}", self.process.log());
            let ready = client::Client::try_connect(self.address).await;
            match ready {
                Ok(mut client) => {
                    let request = client::request("GET", "/-/ready", &[]);
                    let answer = client.try_exchange(request).await;
                    answer.is_ok_and(|answer| answer.status == 200)
                }
                Err(_) => false,
            }
        })
        .await;
    }

    /// A response of its API.
    ///
    /// # Panics
    /// When it does not succeed.
    async fn api(&self, target: &str) -> Value {
        let answer = client::get(self.address, target).await;
        let document: Value = serde_json::from_slice(&answer.body)
            .unwrap_or_else(|error| panic!("{target}: {error}: {answer}"));
        assert_eq!(document["status"], "success", "{target}: {document}");
        document["data"].clone()
    }

    /// Values of an instant query: the labels and the number of each, without `NaN`.
    pub async fn query(&self, query: &str) -> Vec<(Value, f64)> {
        let target = format!("/api/v1/query?query={}", encode(query));
        let data = self.api(&target).await;
        let sample = |sample: &Value| {
            let value = sample["value"][1].as_str()?.parse().ok()?;
            Some((sample["metric"].clone(), value))
        };
        let samples = data["result"].as_array().into_iter().flatten();
        let numbers = samples.filter_map(sample);
        numbers
            .filter(|(_, value): &(_, f64)| !value.is_nan())
            .collect()
    }

    /// Waits until a query has a value that satisfies `test`.
    ///
    /// # Panics
    /// When it has none within [`PATIENCE`].
    pub async fn wait_for(&self, query: &str, test: impl Fn(f64) -> bool) {
        let met = async {
            while !self
                .query(query)
                .await
                .iter()
                .any(|(_, value)| test(*value))
            {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, met).await.is_err() {
            let now = self.query(query).await;
            panic!(
                "{query}: not within {PATIENCE:?}: {now:?}\n{}",
                self.process.log()
            );
        }
    }

    /// All rules and alerts that it has loaded, as its API describes them.
    pub async fn rules(&self) -> Vec<Value> {
        let data = self.api("/api/v1/rules").await;
        let groups = data["groups"].as_array().cloned().unwrap_or_default();
        let rules = groups.iter().filter_map(|group| group["rules"].as_array());
        rules.flatten().cloned().collect()
    }

    /// Names of all metrics that it has.
    pub async fn metric_names(&self) -> Vec<String> {
        let data = self.api("/api/v1/label/__name__/values").await;
        let names = data.as_array().into_iter().flatten();
        names
            .filter_map(|name| Some(name.as_str()?.to_owned()))
            .collect()
    }
}

/// The words in a text that could be metrics of the filter or of Envoy.
#[must_use]
pub fn metrics_named_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_:".contains(c));
    let wanted = |word: &&str| word.starts_with("sluice_") || word.starts_with("envoy_");
    // Words that are labels, or the job of a listener.
    let others = [
        "envoy_http_conn_manager_prefix",
        "envoy_response_code_class",
        "envoy_cluster_name",
        "sluice_background",
    ];
    let metrics = words.filter(wanted).filter(|word| !others.contains(word));
    metrics.map(str::to_owned).collect()
}

/// Percent-encodes all characters except plain ones.
fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() {
            encoded.push(char::from(byte));
        } else {
            // NB: writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}
