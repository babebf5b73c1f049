// SPDX-License-Identifier: Apache-2.0
//! Every overlay with every component is valid for Kubernetes, for Istio, and for `istioctl analyze`.

use serde_json::{Value, json};
use sluice_tests::chart::objects;
use sluice_tests::machine::tool::{repository, tool};
use sluice_tests::mesh::Mesh;
use sluice_tests::mesh::kustomize::{
    GATEWAYS_ROLES, Overlay, build, climb, names_in, newest_kustomize, oldest_kustomize,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Namespace that the manifests are built for.
const NAMESPACE: &str = "valid";
/// The overlay of two namespaces. The API server gets each of its tiers separately.
const FLEET: &str = "fleet";
const TIERS: [&str; 2] = ["fleet/gateways", "fleet/caches"];

/// All overlays and components of the folder, by name.
fn variants() -> Vec<(String, Overlay)> {
    let mut variants = Vec::new();
    let overlay = |name: &str| Overlay::on(&format!("overlays/{name}"));
    let names = names_in("overlays").into_iter();
    for name in names.chain(TIERS.map(str::to_owned)) {
        let overlay = match name.as_str() {
            FLEET => overlay(FLEET),
            name => overlay(name).namespace(NAMESPACE),
        };
        variants.push((name, overlay));
    }
    for component in names_in("components") {
        let overlay = Overlay::on("overlays/s3")
            .component(&component)
            .setting("BUCKET", "other-bucket")
            .namespace(NAMESPACE);
        variants.push((format!("s3 with {component}"), overlay));
    }
    assert!(variants.len() > 8, "{variants:?}");
    variants
}

/// Checks that no placeholder is left.
fn assert_filled_in(name: &str, manifests: &str) {
    for placeholder in [
        "BUCKET_HOST\n",
        "MODULE\n",
        "IMAGE\n",
        "PROXY_VERSION\n",
        "REGION\n",
        "/BUCKET/",
        "FLEET\n",
        "TIER_ONE_NAMESPACE\n",
        "TIER_TWO_HOST\n",
    ] {
        assert!(
            !manifests.contains(&format!(": {placeholder}")),
            "{name}: {placeholder}\n{manifests}"
        );
    }
}

/// Checks that `istioctl` reports neither an error nor a warning.
fn assert_istio_accepts(name: &str, file: &Path, home: &Path) {
    for arguments in [
        vec!["validate", "-f"],
        vec!["analyze", "--all-namespaces", "--use-kube=false"],
    ] {
        let output = Command::new(tool("SLUICE_ISTIO", "istioctl"))
            .env_clear()
            .env("HOME", home)
            .args(&arguments)
            .arg(file)
            .output()
            .unwrap();
        let says = [output.stdout, output.stderr].concat();
        let says = String::from_utf8_lossy(&says);
        assert!(output.status.success(), "{name}: {arguments:?}: {says}");
        // For each EnvoyFilter, `istioctl` notes that the API is Envoy's own. The note is expected.
        let known = "EnvoyFilter exposes internal implementation details";
        let mut others = says.lines().filter(|line| !line.contains(known));
        let doubt = others.find(|line| {
            let words = ["* ", "Warning", "Error", "Info"];
            words.iter().any(|word| line.contains(word))
        });
        assert_eq!(doubt, None, "{name}: {arguments:?}: {says}");
        assert!(
            !says.contains("may not provide"),
            "{name}: {arguments:?}: {says}"
        );
    }
}

#[tokio::test]
async fn every_variant_is_valid() {
    let mesh = Mesh::shared().await;
    mesh.cluster
        .kubectl(&["create", "namespace", NAMESPACE], "");
    let folder = TempDir::new().unwrap();
    for (name, overlay) in variants() {
        let manifests = overlay.build();
        assert_filled_in(&name, &manifests);
        let dry = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--dry-run=server",
            "-f",
            "-",
        ];
        if name != FLEET {
            mesh.cluster.kubectl(&dry, &manifests);
        }
        let file = folder
            .path()
            .join(format!("{}.yaml", name.replace('/', "-")));
        std::fs::write(&file, &manifests).unwrap();
        assert_istio_accepts(&name, &file, folder.path());
    }
}

/// Writes the overlay of the documents into a folder.
fn write_the_documents_overlay(folder: &Path) {
    let text = std::fs::read_to_string(repository().join("mesh/README.md")).unwrap();
    let mesh = climb(folder).join("mesh").display().to_string();
    let files = text.split("```yaml\n# mesh/my-site/").skip(1);
    for file in files {
        let (name, rest) = file.split_once('\n').unwrap();
        let (content, _) = rest.split_once("```").unwrap();
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let content = ["overlays", "components"]
            .into_iter()
            .fold(content.to_owned(), |content, name| {
                content.replace(&format!("../{name}"), &format!("{mesh}/{name}"))
            });
        std::fs::write(path, content).unwrap();
    }
    std::fs::write(folder.join("settings.env"), "BUCKET=my-site\n").unwrap();
}

#[test]
fn the_overlay_that_the_documents_show_changes_bucket_and_policy() {
    let folder = TempDir::new().unwrap();
    write_the_documents_overlay(folder.path());
    let [oldest, newest] = [oldest_kustomize(), newest_kustomize()];
    let manifests = build(oldest, folder.path());
    assert_eq!(manifests, build(newest, folder.path()));
    // The manifests have the lines of the example's policy, and the defaults that the example leaves out.
    for line in ["\"200\": 10m", "\"301\": 1h", "bucket: my-site"] {
        assert!(
            manifests.contains(&format!(" {line}\n")),
            "{line}: {manifests}"
        );
    }
}

#[test]
fn an_envoy_filter_of_ones_own_stays_as_it_is() {
    let folder = TempDir::new().unwrap();
    write_the_documents_overlay(folder.path());
    let path = folder.path().join("kustomization.yaml");
    let overlay = std::fs::read_to_string(&path).unwrap();
    let with_own = overlay.replace("resources: [", "resources: [own.yaml, ");
    assert_ne!(with_own, overlay);
    std::fs::write(path, with_own).unwrap();
    let own = "apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nmetadata:\n  name: own\n  \
               namespace: sluice\nspec:\n  workloadSelector:\n    labels:\n      istio: another\n";
    std::fs::write(folder.path().join("own.yaml"), own).unwrap();
    let manifests = build(oldest_kustomize(), folder.path());
    assert!(manifests.contains(own), "{manifests}");
}

#[test]
fn a_canary_has_its_pods_and_their_roles_and_nothing_of_the_gateway() {
    let labels = |object: &Value| object["spec"]["workloadSelector"]["labels"].clone();
    let roles = |objects: &[Value]| -> BTreeMap<String, Value> {
        let filters = objects
            .iter()
            .filter(|object| object["kind"] == "EnvoyFilter");
        let name = |filter: &Value| filter["metadata"]["name"].as_str().unwrap().to_owned();
        filters
            .map(|filter| (name(filter), labels(filter)))
            .collect()
    };
    let gateway = objects(&Overlay::on("overlays/s3").build());
    let canary = Overlay::on("overlays/s3").component("canary");
    let canary = objects(&canary.setting("MODULE", "oci://other").build());
    let [of_gateway, of_canary] = [&gateway, &canary].map(|objects| roles(objects));
    for role in GATEWAYS_ROLES {
        let of = |track: &str| json!({"istio": "sluice-gateway", "sluice-track": track});
        assert_eq!(of_gateway[role], of("stable"), "{role}");
        assert_eq!(of_canary[&format!("{role}-canary")], of("canary"), "{role}");
    }
    assert_eq!(of_canary.len(), GATEWAYS_ROLES.len());
    let (pods, others): (Vec<_>, Vec<_>) = canary
        .iter()
        .filter(|object| object["kind"] != "EnvoyFilter")
        .partition(|object| object["kind"] == "Deployment");
    assert!(others.is_empty(), "{others:?}");

    // Its pods are behind the Service of the gateway, and the Deployment of the gateway does not select them.
    let of_kind = |kind: &str| {
        gateway
            .iter()
            .find(|object| object["kind"] == kind)
            .unwrap()
    };
    let of_pods = &pods[0]["spec"]["template"]["metadata"]["labels"];
    let selects = |selector: &Value| {
        let mut pairs = selector.as_object().unwrap().iter();
        pairs.all(|(name, value)| &of_pods[name] == value)
    };
    assert!(selects(&of_kind("Service")["spec"]["selector"]));
    assert!(selects(&of_canary["sluice-edge-canary"]));
    assert!(selects(&pods[0]["spec"]["selector"]["matchLabels"]));
    assert!(!selects(
        &of_kind("Deployment")["spec"]["selector"]["matchLabels"]
    ));
    assert!(!selects(&of_gateway["sluice-edge"]));
    let modules = canary.iter().map(Value::to_string);
    let with_module = modules.filter(|text| text.contains("oci://other")).count();
    assert_eq!(with_module, GATEWAYS_ROLES.len());
}

#[test]
fn the_oldest_kustomize_builds_the_same() {
    let base = ("base".to_owned(), Overlay::on("base"));
    for (name, overlay) in variants().into_iter().chain([base]) {
        let [oldest, newest] =
            [oldest_kustomize(), newest_kustomize()].map(|kustomize| overlay.build_by(kustomize));
        assert!(oldest == newest, "{name}: differs:\n{oldest}\n{newest}");
    }
}

#[tokio::test]
async fn a_manifest_that_is_wrong_is_found_so() {
    let mesh = Mesh::shared().await;
    let wrong = "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: wrong, namespace: default}\n\
                 spec: {nonsense: true, servers: [{port: {number: 80, name: http}}]}\n";
    let output = mesh
        .cluster
        .run(&["apply", "--dry-run=server", "-f", "-"], wrong);
    assert!(!output.status.success());
}
