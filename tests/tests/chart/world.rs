// SPDX-License-Identifier: Apache-2.0
//! The cluster of the tests, and the edge's own check of the files and the environment that a pod gets.

use serde_json::{Value, json};
use sluice_tests::eventually;
use sluice_tests::machine::tool::{entry_point, folder};
use sluice_tests::mesh::cluster::Cluster;
use std::path::Path;
use std::process::{Command, Output};
use tokio::sync::OnceCell;

/// The namespace whose pods must be restricted.
pub const NAMESPACE: &str = "edges";

/// The API server that all tests of this process share, with the definitions of the custom resources and with the
/// namespace.
pub async fn shared_cluster() -> &'static Cluster {
    static SHARED: OnceCell<Cluster> = OnceCell::const_new();
    SHARED
        .get_or_init(async || {
            let cluster = Cluster::start().await;
            let definitions = folder("SLUICE_DEFINITIONS").join("definitions.yaml");
            cluster.apply(&std::fs::read_to_string(definitions).unwrap());
            let established = ["wait", "--for=condition=established", "crd", "--all"];
            eventually("the definitions", async || {
                cluster.run(&established, "").status.success()
            })
            .await;
            let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
            cluster.apply(
                &json!({
                    "apiVersion": "v1", "kind": "Namespace",
                    "metadata": {"name": NAMESPACE, "labels": labels},
                })
                .to_string(),
            );
            cluster
        })
        .await
}

/// Runs `sluice check` with the files of a ConfigMap and the environment of a workload's container, in a folder of this
/// machine.
pub fn check(files: &Value, workload: &Value, folder: &Path) -> Output {
    let place = folder.display().to_string();
    let sites = folder.join("sites");
    std::fs::create_dir(&sites).unwrap();
    for (name, text) in files["data"].as_object().unwrap() {
        std::fs::write(sites.join(name), text.as_str().unwrap()).unwrap();
    }
    let mut command = Command::new(entry_point());
    command.env_clear().arg("check").current_dir(folder);
    command.env("SLUICE_STATE", folder.join("state"));
    std::fs::create_dir(folder.join("peers")).unwrap();
    std::fs::write(folder.join("peers/secret"), "the-secret-of-the-peers").unwrap();
    for variable in ["WWW_KEY", "WWW_SECRET", "SIGN_A"] {
        command.env(variable, "a-secret-of-this-test-with-at-least-32-bytes");
    }
    let container = &workload["spec"]["template"]["spec"]["containers"][0];
    for variable in container["env"].as_array().unwrap() {
        let value = match (&variable["valueFrom"], variable["value"].as_str()) {
            (Value::Null, value) => value.unwrap_or_default().replace("/etc/sluice", &place),
            _ => "the-token-of-this-test".to_owned(),
        };
        command.env(variable["name"].as_str().unwrap(), value);
    }
    command.output().unwrap()
}
