// SPDX-License-Identifier: Apache-2.0
//! Installations and upgrades by Helm, with the check in front of each. The test does the work of the controller of
//! Jobs.

use crate::sets::least_with;
use crate::world::{check, shared_cluster};
use serde_json::{Value, json};
use sluice_tests::chart::helm;
use sluice_tests::eventually;
use sluice_tests::mesh::cluster::Cluster;
use std::process::Output;
use tempfile::TempDir;

/// The namespace of the release, which only this test uses.
const NAMESPACE: &str = "upgrades";
/// The Job that runs the check, and the ConfigMap of its files.
const CHECK: &str = "www-sluice-check";

/// The object of this name, if it exists.
fn object(cluster: &Cluster, name: &str) -> Option<Value> {
    let arguments = ["--namespace", NAMESPACE, "get", name, "-o", "json"];
    let output = cluster.run(&arguments, "");
    output
        .status
        .success()
        .then(|| serde_json::from_slice(&output.stdout).unwrap())
}

/// Tells the API server how the Job has ended.
fn end_job(cluster: &Cluster, is_success: bool) {
    let now = jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string();
    let types = if is_success {
        ["SuccessCriteriaMet", "Complete"]
    } else {
        ["FailureTarget", "Failed"]
    };
    let conditions =
        types.map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": now}));
    let mut status = json!({"startTime": now, "conditions": conditions});
    if is_success {
        status["completionTime"] = now.into();
        status["succeeded"] = 1.into();
    } else {
        status["failed"] = 1.into();
    }
    let patch = json!({"status": status}).to_string();
    let job = format!("job/{CHECK}");
    let arguments = [
        "--namespace",
        NAMESPACE,
        "patch",
        &job,
        "--subresource=status",
        "--type=merge",
        "--patch",
        &patch,
    ];
    cluster.kubectl(&arguments, "");
}

/// Runs Helm with these values, and the check that it starts. Returns their outputs.
async fn run(cluster: &Cluster, command: &'static str, values: &Value) -> [Output; 2] {
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let values = values.clone();
    let former = object(cluster, &format!("job/{CHECK}")).map(|job| job["metadata"]["uid"].clone());
    let helm = std::thread::spawn(move || {
        helm(
            &[
                command,
                "--kubeconfig",
                &kubeconfig,
                "--namespace",
                NAMESPACE,
                "--timeout",
                "100s",
            ],
            &values,
        )
    });
    let mut job = Value::Null;
    eventually("the check, or the end of Helm", async || {
        let found = object(cluster, &format!("job/{CHECK}"));
        job = found
            .filter(|job| former.as_ref() != Some(&job["metadata"]["uid"]))
            .unwrap_or_default();
        job.is_object() || helm.is_finished()
    })
    .await;
    assert!(job.is_object(), "{:?}", helm.join());
    let files = object(cluster, &format!("configmap/{CHECK}")).expect("the files of the check");
    let folder = TempDir::with_prefix("sluice-upgrade-").unwrap();
    let checked = check(&files, &job, folder.path());
    end_job(cluster, checked.status.success());
    [helm.join().unwrap(), checked]
}

#[tokio::test]
async fn a_wrong_site_stops_an_upgrade_and_a_changed_one_reaches_the_pods_without_a_restart() {
    let cluster = shared_cluster().await;
    cluster.kubectl(&["create", "namespace", NAMESPACE], "");
    let site = |policy: &str| {
        least_with(
            &json!({"sites": [{"name": "www", "origin": "s3://my-bucket", "policy": policy}]}),
        )
    };
    let state = || {
        let files =
            object(cluster, "configmap/www-sluice-sites").expect("the files")["data"].clone();
        let deployment = object(cluster, "deployment/www-sluice").expect("the deployment");
        (
            files["sites.yaml"].as_str().unwrap().to_owned(),
            deployment["spec"]["template"].clone(),
        )
    };
    let [helm, _] = run(cluster, "install", &site("bucket")).await;
    assert!(
        helm.status.success(),
        "{}",
        String::from_utf8_lossy(&helm.stderr)
    );
    let (file, pod) = state();
    assert!(file.contains("policy: bucket"), "{file}");

    let [helm, checked] = run(cluster, "upgrade", &site("missing.yaml")).await;
    assert!(String::from_utf8_lossy(&checked.stderr).contains("missing.yaml"));
    assert!(!helm.status.success());
    assert_eq!(state(), (file, pod.clone()));

    let [helm, _] = run(cluster, "upgrade", &site("downloads")).await;
    assert!(
        helm.status.success(),
        "{}",
        String::from_utf8_lossy(&helm.stderr)
    );
    let (file, same_pod) = state();
    assert!(file.contains("policy: downloads"), "{file}");
    assert_eq!(same_pod, pod);
}
