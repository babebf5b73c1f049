// SPDX-License-Identifier: Apache-2.0
//! The manifests of `mesh/`, through an overlay like a user's: settings, and places on this machine.

use super::cluster::kubectl;
use crate::machine::tool::{repository, tool};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// An overlay on one of `mesh/`, `overlays/s3` for example.
#[derive(Clone, Debug)]
#[must_use]
pub struct Overlay {
    base: String,
    components: Vec<String>,
    patches: Vec<Value>,
    namespace: Option<String>,
    settings: Vec<(String, String)>,
    policy: Option<Value>,
}

/// The prefix of components that take the module from another source than the agent.
const MODULE_FROM: &str = "module-from-";

/// The roles of a gateway in front of a bucket, by their `EnvoyFilter`s.
pub const GATEWAYS_ROLES: [&str; 3] = ["sluice-probe", "sluice-edge", "sluice-origin"];
/// The roles of a gateway of tier one.
pub const TIER_ONES_ROLES: [&str; 2] = ["sluice-probe", "sluice-front"];

/// The policy of a folder of `mesh/`, changed.
///
/// # Panics
/// When the folder has none.
pub fn changed_policy(folder: &str, change: impl FnOnce(&mut Value)) -> Value {
    let path = repository().join("mesh").join(folder).join("policy.yaml");
    let resource: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut policy = resource["spec"].clone();
    change(&mut policy);
    policy
}

impl Overlay {
    /// Starts an overlay on `base`.
    pub fn on(base: &str) -> Self {
        Self {
            base: base.to_owned(),
            components: Vec::new(),
            patches: Vec::new(),
            namespace: None,
            settings: Vec::new(),
            policy: None,
        }
    }

    /// Sets the namespace.
    pub fn namespace(self, namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..self
        }
    }

    /// Adds one of `components/`.
    pub fn component(mut self, name: &str) -> Self {
        self.components.push(name.to_owned());
        self
    }

    /// Sets a value in the ConfigMap of settings.
    pub fn setting(mut self, name: &str, value: impl Into<String>) -> Self {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.into()));
        self
    }

    /// Replaces the policy of `policy.yaml`.
    pub fn policy(self, policy: &Value) -> Self {
        Self {
            policy: Some(policy.clone()),
            ..self
        }
    }

    /// Adds a JSON patch of one object.
    pub fn patch(mut self, kind: &str, name: &str, operations: &Value) -> Self {
        self.patches.push(json!({
            "target": {"kind": kind, "name": name},
            "patch": operations.to_string(),
        }));
        self
    }

    /// Sets a field of the store, for clients and for background fills.
    pub fn store(self, field: &str, value: impl Into<Value>) -> Self {
        const PLACES: [(&str, &str); 2] = [
            ("sluice-cache", ""),
            (
                "sluice-background",
                "/filter_chains/0/filters/0/typed_config/http_filters/2",
            ),
        ];
        let value = value.into();
        PLACES.into_iter().fold(self, |overlay, (name, filter)| {
            let path = format!(
                "/spec/configPatches/0/patch/value{filter}/typed_config/typed_config/{field}"
            );
            let operations = json!([{"op": "replace", "path": path, "value": value}]);
            overlay.patch("EnvoyFilter", name, &operations)
        })
    }

    /// Takes the module from the place that the manifests name.
    pub fn own_code(mut self) -> Self {
        let of_code = |patch: &Value| patch["patch"].to_string().contains("/vm_config/code");
        self.patches.retain(|patch| !of_code(patch));
        self
    }

    /// Takes the module of these roles from `code`.
    pub fn code(self, roles: &[&str], code: &Value) -> Self {
        let path = format!("{ROLE}/vm_config/code");
        let operations = json!([{"op": "replace", "path": path, "value": code}]);
        roles.iter().fold(self, |overlay, role| {
            overlay.patch("EnvoyFilter", role, &operations)
        })
    }

    /// The manifests, as `kubectl apply -k` would apply them.
    ///
    /// # Panics
    /// When `kubectl` does not take them.
    #[must_use]
    pub fn build(&self) -> String {
        self.build_by(newest_kustomize())
    }

    /// Builds the manifests with this command.
    ///
    /// # Panics
    /// When it does not take them.
    #[must_use]
    pub fn build_by(&self, kustomize: Command) -> String {
        let folder = TempDir::with_prefix("sluice-overlay-").unwrap();
        self.write(folder.path());
        build(kustomize, folder.path())
    }

    /// Writes the overlay into a folder.
    fn write(&self, folder: &Path) {
        let mesh = climb(folder).join("mesh");
        let path = |name: &str| mesh.join(name).display().to_string();
        // The components that replace a fetch must be last.
        let (last, first): (Vec<_>, Vec<_>) = self
            .components
            .iter()
            .partition(|name| name.starts_with(MODULE_FROM));
        let paths = |names: Vec<&String>| -> Vec<_> {
            let paths = names.into_iter();
            paths
                .map(|name| path(&format!("components/{name}")))
                .collect()
        };
        let mut components = paths(first);
        if let Some(policy) = &self.policy {
            write_policy(&folder.join("policy"), policy);
            components.push("policy".to_owned());
        }
        if !self.settings.is_empty() || self.policy.is_some() {
            components.push(path("components/settings"));
        }
        components.extend(paths(last));
        let mut generators = Vec::new();
        if !self.settings.is_empty() {
            let literals: Vec<_> = self
                .settings
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            generators.push(json!({
                "name": "sluice-settings", "namespace": "sluice", "behavior": "merge", "literals": literals,
            }));
        }
        let mut kustomization = json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [path(&self.base)],
            "components": components,
            "configMapGenerator": generators,
            "generatorOptions": {"disableNameSuffixHash": true},
            "patches": self.patches,
        });
        if let Some(namespace) = &self.namespace {
            kustomization["namespace"] = namespace.as_str().into();
        }
        write_kustomization(folder, &kustomization);
    }
}

/// The kustomize of the `kubectl` of these tests.
#[must_use]
pub fn newest_kustomize() -> Command {
    let mut command = kubectl();
    command.arg("kustomize");
    command
}

/// The oldest kustomize for which the manifests are made.
#[must_use]
pub fn oldest_kustomize() -> Command {
    let mut command = Command::new(tool("SLUICE_KUSTOMIZE", "kustomize"));
    command.env_clear().arg("build");
    command
}

/// Builds a folder with kustomize.
///
/// # Panics
/// When it does not take it.
#[must_use]
pub fn build(mut kustomize: Command, folder: &Path) -> String {
    let output = kustomize.arg(folder).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", folder.display());
    String::from_utf8(output.stdout).unwrap()
}

/// Place of a role's configuration in its `EnvoyFilter`.
pub const ROLE: &str = "/spec/configPatches/0/patch/value/typed_config/config";

/// Writes a component with a policy, like a user's.
fn write_policy(folder: &Path, policy: &Value) {
    std::fs::create_dir(folder).unwrap();
    let replace = json!([{"op": "replace", "path": "/spec", "value": policy}]);
    let component = json!({
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": [{
            "target": {"kind": "Policy", "name": "sluice-policy"},
            "patch": replace.to_string(),
        }],
    });
    write_kustomization(folder, &component);
}

fn write_kustomization(folder: &Path, kustomization: &Value) {
    let text = serde_json::to_string(kustomization).unwrap();
    std::fs::write(folder.join("kustomization.yaml"), text).unwrap();
}

/// The relative path from a folder to the top of the repository, because kustomize accepts relative paths only.
///
/// # Panics
/// When the folder does not exist.
#[must_use]
pub fn climb(from: &Path) -> PathBuf {
    let from = from.canonicalize().unwrap();
    let up = from.components().skip(1).map(|_| "..");
    let down = repository().canonicalize().unwrap();
    up.chain(
        down.components()
            .skip(1)
            .map(|part| part.as_os_str().to_str().unwrap()),
    )
    .collect()
}

/// The names of the folders in `mesh/FOLDER`.
///
/// # Panics
/// When it cannot be read.
#[must_use]
pub fn names_in(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(repository().join("mesh").join(folder)).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
