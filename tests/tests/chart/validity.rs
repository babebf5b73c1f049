// SPDX-License-Identifier: Apache-2.0
//! Every set of values is valid for the API server in a namespace with the strictest pod security, and for the edge.

use crate::sets::{least, least_with, sets};
use crate::world::{NAMESPACE, check, shared_cluster};
use serde_json::{Value, json};
use sluice_tests::chart::{helm, manifests, objects};
use sluice_tests::machine::tool::{entry_point, repository};
use sluice_tests::mesh::cluster::Cluster;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A dry run that the API server does.
const DRY_RUN: [&str; 4] = [
    "apply",
    "--server-side",
    "--dry-run=server",
    "--validate=strict",
];

/// Lets the API server judge an object, without storing it.
fn judge(cluster: &Cluster, object: &str) -> Output {
    let arguments = [&DRY_RUN[..], &["--namespace", NAMESPACE, "-f", "-"]].concat();
    cluster.run(&arguments, object)
}

/// The pods that these objects start.
fn pods(objects: &[Value]) -> Vec<Value> {
    let templates = objects
        .iter()
        .filter(|object| object["spec"]["template"].is_object());
    let pods = templates.map(|object| {
        let mut pod = object["spec"]["template"].clone();
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        pod["metadata"]["name"] = object["metadata"]["name"].clone();
        let claims = object["spec"]["volumeClaimTemplates"].as_array();
        let volumes = pod["spec"]["volumes"].as_array_mut().unwrap();
        for claim in claims.into_iter().flatten() {
            let name = &claim["metadata"]["name"];
            volumes.push(json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
        }
        pod
    });
    pods.collect()
}

#[tokio::test]
async fn the_api_server_accepts_every_set_and_its_restricted_pods() {
    let cluster = shared_cluster().await;
    for (name, values) in sets() {
        let manifests =
            manifests(NAMESPACE, &values).unwrap_or_else(|error| panic!("{name}: {error}"));
        let objects = objects(&manifests);
        let pods = pods(&objects);
        assert!(!pods.is_empty(), "{name}");
        for pod in &pods {
            // The last lines of the log of a refused start are in the status of the pod.
            let policy = &pod["spec"]["containers"][0]["terminationMessagePolicy"];
            assert_eq!(policy, "FallbackToLogsOnError", "{name}");
        }
        let texts = pods.iter().map(Value::to_string);
        for text in std::iter::once(manifests).chain(texts) {
            let output = judge(cluster, &text);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name}: {errors}\n{text}");
            assert!(!errors.contains("Warning"), "{name}: {errors}\n{text}");
        }
    }

    // Controls: the API server refuses an unknown field, and a pod that may do more.
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"nonsense": 1}});
    assert!(!judge(cluster, &service.to_string()).status.success());
    let values = least_with(&json!({"securityContext": {"allowPrivilegeEscalation": true}}));
    let pods = pods(&objects(&manifests(NAMESPACE, &values).unwrap()));
    let refused = judge(cluster, &pods[0].to_string());
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(
        errors.contains("violates PodSecurity \"restricted"),
        "{errors}"
    );
}

#[tokio::test]
async fn the_cron_job_of_the_documents_is_restricted_and_writes_to_the_feed() {
    let cluster = shared_cluster().await;
    let text = std::fs::read_to_string(repository().join("docs/kubernetes.md")).unwrap();
    let mut blocks = text.split("```yaml\n").skip(1);
    let (job, _) = blocks
        .find_map(|block| {
            block
                .split_once("```")
                .filter(|(text, _)| text.contains("kind: CronJob"))
        })
        .expect("a CronJob");
    let job = job.replace("namespace: edge}", &format!("namespace: {NAMESPACE}}}"));
    let mut object: Value = serde_saphyr::from_str(&job).unwrap();
    object["spec"]["template"] = object["spec"]["jobTemplate"]["spec"]["template"].clone();
    object["spec"]["template"]["spec"]["volumes"] = json!([]);
    for text in [job, pods(&[object.clone()])[0].to_string()] {
        let output = judge(cluster, &text);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}\n{text}");
    }

    // Its command, with an endpoint that does not answer.
    let container = &object["spec"]["template"]["spec"]["containers"][0];
    let arguments = container["args"].as_array().unwrap().iter();
    let mut command = Command::new(entry_point());
    command
        .env_clear()
        .args(arguments.map(|argument| argument.as_str().unwrap()));
    for variable in container["env"].as_array().unwrap() {
        command.env(
            variable["name"].as_str().unwrap(),
            variable["value"].as_str().unwrap(),
        );
    }
    command
        .env("AWS_ACCESS_KEY_ID", "a")
        .env("AWS_SECRET_ACCESS_KEY", "b");
    command.env("SLUICE_S3_ENDPOINT", "http://127.0.0.1:1");
    let output = command.output().unwrap();
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(
        says.contains("s3://my-bucket/.sluice/purges: no answer"),
        "{says}"
    );
}

/// The values of an edge with a certificate.
fn with_http3(http3: &Value) -> Value {
    let tls =
        json!({"certificate": "/etc/sluice/tls/www/tls.crt", "key": "/etc/sluice/tls/www/tls.key"});
    let site = json!({"name": "www", "hosts": ["www.example.com"], "origin": "s3://my-bucket", "tls": tls});
    least_with(&json!({"http3": http3, "tlsSecrets": ["www"], "sites": [site]}))
}

#[tokio::test]
async fn http3_is_a_udp_port_with_the_number_that_clients_learn() {
    let cluster = shared_cluster().await;
    for (http3, setting, port) in [
        (json!(true), Some("on"), Some("443")),
        (json!("clear"), Some("clear"), None),
        (json!(false), None, None),
    ] {
        let manifests = manifests(NAMESPACE, &with_http3(&http3)).unwrap();
        let output = judge(cluster, &manifests);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{http3}: {errors}");
        let objects = objects(&manifests);
        let of_kind = |kind: &str| {
            objects
                .iter()
                .find(|object| object["kind"] == kind)
                .unwrap()
        };
        let container = &of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0];
        let variable = |name: &str| {
            let mut all = container["env"].as_array().unwrap().iter();
            let found = all.find(|variable| variable["name"] == name)?;
            found["value"].as_str()
        };
        assert_eq!(variable("SLUICE_HTTP3"), setting, "{http3}");
        assert_eq!(variable("SLUICE_HTTP3_PORT"), port, "{http3}");
        let service = &of_kind("Service")["spec"]["ports"];
        let policy = &of_kind("NetworkPolicy")["spec"]["ingress"][0]["ports"];
        for ports in [&container["ports"], service, policy] {
            let ports = ports.as_array().unwrap().iter();
            let udp = ports.filter(|port| port["protocol"] == "UDP").count();
            assert_eq!(udp, usize::from(port.is_some()), "{http3}");
        }
    }
}

/// Runs `sluice check` as the edge of these values.
fn check_values(values: &Value, folder: &Path) -> Output {
    let objects =
        objects(&manifests(NAMESPACE, values).unwrap_or_else(|error| panic!("{error}: {values}")));
    let named = |object: &&Value, suffix: &str| {
        let name = object["metadata"]["name"].as_str().unwrap();
        name.ends_with(suffix)
    };
    let files = objects.iter().find(|object| named(object, "-sites"));
    let workload = objects
        .iter()
        .find(|object| ["Deployment", "StatefulSet"].contains(&object["kind"].as_str().unwrap()));
    check(files.unwrap(), workload.unwrap(), folder)
}

#[test]
fn the_check_of_the_edge_accepts_every_set() {
    for (name, values) in sets() {
        let folder = TempDir::with_prefix("sluice-values-").unwrap();
        if values["certificateAuthorities"].is_object() {
            let key = rcgen::generate_simple_self_signed(["ca.test".to_owned()]).unwrap();
            std::fs::create_dir(folder.path().join("authorities")).unwrap();
            std::fs::write(folder.path().join("authorities/ca.crt"), key.cert.pem()).unwrap();
        }
        let output = check_values(&values, folder.path());
        let says = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {says}");
    }

    // Control: a site whose policy is not among the files.
    let folder = TempDir::with_prefix("sluice-values-").unwrap();
    let values = least_with(
        &json!({"sites": [{"name": "a", "origin": "s3://my-bucket", "policy": "missing.yaml"}]}),
    );
    let output = check_values(&values, folder.path());
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("missing.yaml"));
}

#[tokio::test]
async fn the_notes_warn_of_an_open_bucket_an_open_port_and_of_purge_calls_that_reach_one_replica() {
    let cluster = shared_cluster().await;
    let kubeconfig = cluster.kubeconfig();
    let arguments = [
        "install",
        "--dry-run=server",
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
        "--namespace",
        NAMESPACE,
    ];
    let notes = |values: &Value| {
        let output = helm(&arguments, values);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_once("NOTES:").expect("notes").1.to_owned()
    };
    let warning = "WARNING: the site www has no `access`";
    let ingress = json!({"ingress": {"enabled": true, "hosts": [{"host": "www.example.com"}]}});
    let open = least_with(&ingress);
    assert!(notes(&open).contains(warning));

    let mut closed = open;
    closed["sites"][0]["access"] = json!({"allow": ["10.0.0.0/8"]});
    assert!(!notes(&closed).contains(warning));
    assert!(!notes(&least()).contains(warning));

    let open = "WARNING: networkPolicy is not enabled";
    let mut peers = least_with(&json!({"peers": {"enabled": true, "secretName": "peers"}}));
    let shown = notes(&peers);
    assert!(
        shown.contains("port-forward pod/www-sluice-0 9901"),
        "{shown}"
    );
    assert!(!shown.contains(open), "{shown}");
    peers["networkPolicy"] = json!({"enabled": false});
    assert!(notes(&peers).contains(open));
    peers["peers"]["enabled"] = false.into();
    assert!(!notes(&peers).contains("9901"));

    let reach = "A purge call to the Service www-sluice-purge reaches one replica.";
    let mut purges =
        least_with(&json!({"purge": {"secretName": "purge", "feed": {"every": "2s"}}}));
    assert!(notes(&purges).contains(reach));
    let mut writes = purges.clone();
    writes["settings"] = json!({"SLUICE_PURGE_FEED_WRITE": "on"});
    assert!(!notes(&writes).contains(reach));
    purges["replicaCount"] = 1.into();
    assert!(!notes(&purges).contains(reach));
}

#[test]
fn a_rollout_has_a_second_pod_unless_a_purge_call_would_miss_it() {
    let surge = |changes: &Value| {
        let objects = objects(&manifests(NAMESPACE, &least_with(changes)).unwrap());
        let mut deployments = objects
            .iter()
            .filter(|object| object["kind"] == "Deployment");
        let strategy = &deployments.next().unwrap()["spec"]["strategy"]["rollingUpdate"];
        strategy["maxSurge"].as_u64().unwrap()
    };
    assert_eq!(surge(&json!({})), 1);
    let feed = json!({"secretName": "purge", "feed": {"every": "2s"}});
    assert_eq!(surge(&json!({"purge": feed})), 1);
    assert_eq!(
        surge(&json!({"purge": {"secretName": "purge"}, "replicaCount": 1})),
        0
    );
    assert_eq!(surge(&json!({"purge": feed, "replicaCount": 1})), 0);
}
