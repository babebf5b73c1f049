// SPDX-License-Identifier: Apache-2.0
//! The container of a pod, run as the kubelet would: its volumes, its variables and its agent.

use super::place::Place;
use crate::machine::ports::free_port;
use crate::machine::process::Process;
use crate::machine::tool;
use crate::mesh::Mesh;
use crate::mesh::istiod::ROOT_NAMESPACE;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Its name in the pod.
const NAME: &str = "istio-proxy";

pub fn container(pod: &Value) -> &Value {
    // A native sidecar is an init container.
    let lists = ["containers", "initContainers"].map(|list| pod["spec"][list].as_array());
    lists
        .into_iter()
        .flatten()
        .flatten()
        .find(|container| container["name"] == NAME)
        .expect("a proxy")
}

/// The volumes that the agent reads.
pub fn mount(mesh: &Mesh, pod: &Value, folder: &Path) {
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let namespace = pod["metadata"]["namespace"].as_str().unwrap();
    let account = pod["spec"]["serviceAccountName"]
        .as_str()
        .unwrap_or("default");
    let token = [
        "--namespace",
        namespace,
        "create",
        "token",
        account,
        "--audience",
        "istio-ca",
    ];
    write(
        "var/run/secrets/tokens/istio-token",
        mesh.cluster.kubectl(&token, "").trim(),
    );
    let root = mesh
        .cluster
        .object(namespace, "configmap/istio-ca-root-cert");
    write(
        "var/run/secrets/istio/root-cert.pem",
        root["data"]["root-cert.pem"].as_str().unwrap(),
    );
    for field in ["labels", "annotations"] {
        let pairs = pod["metadata"][field].as_object().into_iter().flatten();
        let lines: Vec<_> = pairs
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        write(&format!("etc/istio/pod/{field}"), &lines.join("\n"));
    }
    for (path, text) in secret_files(mesh, pod) {
        write(path.trim_start_matches('/'), &text);
    }
    // As in the image, except that all listeners are on this machine's loopback addresses.
    let template = mesh.istiod.release().file("envoy_bootstrap.json");
    write(
        "bootstrap.json",
        &template.replace("{{ .wildcard }}", "{{ .localhost }}"),
    );
    for path in [
        "etc/istio/proxy",
        "var/lib/istio/data",
        "var/run/secrets/workload-spiffe-uds",
    ] {
        std::fs::create_dir_all(folder.join(path)).unwrap();
    }
}

/// The mounts of Secrets in the container.
fn secret_mounts(pod: &Value) -> Vec<(&str, &Value)> {
    let list = |value| Value::as_array(value).into_iter().flatten();
    let volumes = || list(&pod["spec"]["volumes"]).filter(|volume| volume["secret"].is_object());
    list(&container(pod)["volumeMounts"])
        .filter_map(|mount| {
            let volume = volumes().find(|volume| volume["name"] == mount["name"])?;
            Some((mount["mountPath"].as_str()?, &volume["secret"]))
        })
        // Istio's own Secrets are certificates that these pods do not have.
        .filter(|(_, secret)| secret["optional"] != true)
        .collect()
}

/// The files of these volumes, by their paths in the container.
fn secret_files(mesh: &Mesh, pod: &Value) -> Vec<(String, String)> {
    let file = |(folder, volume): (&str, &Value), item: &Value| {
        let reference = json!({"name": volume["secretName"], "key": item["key"]});
        let path = format!("{folder}/{}", item["path"].as_str().unwrap());
        (path, secret(mesh, pod, &reference))
    };
    secret_mounts(pod)
        .into_iter()
        .flat_map(|mount| {
            let items = mount.1["items"].as_array().into_iter().flatten();
            items.map(move |item| file(mount, item)).collect::<Vec<_>>()
        })
        .collect()
}

pub fn launch(mesh: &Mesh, pod: &Value, place: &Place) -> Process {
    let mut variables = environment(mesh, pod);
    here(mesh, place, &mut variables);
    for (folder, _) in secret_mounts(pod) {
        for value in variables.values_mut().filter(|value| *value == folder) {
            *value = format!("{}{folder}", place.folder.path().display());
        }
    }
    let expand = |argument: &Value| {
        variables.iter().fold(
            argument.as_str().unwrap().to_owned(),
            |text, (name, value)| text.replace(&format!("$({name})"), value),
        )
    };
    let folder = place.folder.path();
    let mut command = agent(mesh, place);
    command.args(
        container(pod)["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(expand),
    );
    command
        .env_clear()
        .envs(&variables)
        .env("HOME", folder)
        .current_dir(folder);
    Process::start(command, &folder.join("pod.log")).unwrap()
}

/// The agent's command. The agent keeps the files that it fetches below a fixed folder of its container, and a volume
/// may have the filter's module there. So a file system of that name is mounted for this process only, which needs
/// root.
fn agent(mesh: &Mesh, place: &Place) -> Command {
    const DATA: &str = "mount -t tmpfs tmpfs /var/lib && mkdir -p /var/lib/istio/data /var/lib/sluice && \
                        { [ -z \"$1\" ] || cp \"$1\" /var/lib/sluice/plugin.wasm; } && shift && exec \"$0\" \"$@\"";
    let agent = mesh.istiod.release().binary("pilot-agent");
    if !place.fetches && place.module.is_none() {
        return Command::new(agent);
    }
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", DATA])
        .arg(agent)
        .arg(place.module.as_deref().unwrap_or(Path::new("")));
    command
}

/// The container's environment, as the kubelet would make it.
fn environment(mesh: &Mesh, pod: &Value) -> BTreeMap<String, String> {
    let variables = container(pod)["env"].as_array().unwrap().iter();
    let resolve = |variable: &Value| {
        let name = variable["name"].as_str().unwrap().to_owned();
        let source = &variable["valueFrom"];
        if source.is_null() {
            // The API server leaves out an empty value.
            let value = variable["value"].as_str().unwrap_or_default();
            return Some((name, value.to_owned()));
        }
        let value = if let Some(path) = source["fieldRef"]["fieldPath"].as_str() {
            let value = pod.pointer(&format!("/{}", path.replace('.', "/")))?;
            value.as_str()?.to_owned()
        } else if let Some(resource) = source["resourceFieldRef"]["resource"].as_str() {
            if resource.ends_with("cpu") {
                "2"
            } else {
                "1073741824"
            }
            .to_owned()
        } else {
            secret(mesh, pod, &source["secretKeyRef"])
        };
        Some((name, value))
    };
    variables.filter_map(resolve).collect()
}

fn secret(mesh: &Mesh, pod: &Value, reference: &Value) -> String {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap();
    let object = format!("secret/{}", reference["name"].as_str().unwrap());
    let field = format!(
        "go-template={{{{index .data {} | base64decode}}}}",
        reference["key"]
    );
    mesh.cluster.kubectl(
        &["--namespace", namespace, "get", &object, "-o", &field],
        "",
    )
}

/// Variables whose values differ on this machine from those in a cluster.
fn here(mesh: &Mesh, place: &Place, variables: &mut BTreeMap<String, String>) {
    let mut proxy: Value = serde_json::from_str(variables["PROXY_CONFIG"].trim()).unwrap();
    proxy["proxyAdminPort"] = place.admin_port.into();
    // The agent's own listener would be on all addresses of the machine; a port that is taken prevents that.
    proxy["statusPort"] = mesh.istiod.address().port().into();
    proxy["binaryPath"] = tool::envoy().display().to_string().into();
    proxy["proxyBootstrapTemplatePath"] = place
        .folder
        .path()
        .join("bootstrap.json")
        .display()
        .to_string()
        .into();
    let istiod = mesh.istiod.address().to_string();
    let version = place.istio_version.clone();
    let version = version.unwrap_or_else(|| mesh.istiod.release().version());
    for (name, value) in [
        ("PROXY_CONFIG", proxy.to_string()),
        ("CA_ADDR", istiod),
        ("ISTIOD_SAN", format!("istiod.{ROOT_NAMESPACE}.svc")),
        ("ISTIO_META_ISTIO_VERSION", version),
        ("ENVOY_STATUS_PORT", free_port().to_string()),
        ("ENVOY_PROMETHEUS_PORT", free_port().to_string()),
    ] {
        variables.insert(name.to_owned(), value);
    }
}
