// SPDX-License-Identifier: Apache-2.0
//! The manifests of `mesh/`, through an overlay like a user's own: settings, and where things are on this machine.

use super::cluster::kubectl;
use crate::machine::tool::repository;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
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
    policy: Option<String>,
}

/// The text of the policy that a folder of `mesh/` comes with, changed.
///
/// # Panics
/// When the folder has none.
pub fn changed_policy(folder: &str, change: impl FnOnce(&mut Value)) -> String {
    let path = repository().join("mesh").join(folder).join("policy.json");
    let mut policy = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    change(&mut policy);
    policy.to_string()
}

impl Overlay {
    /// What `base` says.
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

    /// In a namespace of its own.
    pub fn namespace(self, namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..self
        }
    }

    /// With one of `components/`.
    pub fn component(mut self, name: &str) -> Self {
        self.components.push(name.to_owned());
        self
    }

    /// With that value in the ConfigMap of settings.
    pub fn setting(mut self, name: &str, value: impl Into<String>) -> Self {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.into()));
        self
    }

    /// With that text in place of `policy.json`.
    pub fn policy(self, text: &str) -> Self {
        Self {
            policy: Some(text.to_owned()),
            ..self
        }
    }

    /// With a JSON patch of one object.
    pub fn patch(mut self, kind: &str, name: &str, operations: &Value) -> Self {
        self.patches.push(json!({
            "target": {"kind": kind, "name": name},
            "patch": operations.to_string(),
        }));
        self
    }

    /// With that field of the store, for clients and for what is fetched in the background.
    pub fn store(self, field: &str, value: impl Into<Value>) -> Self {
        const PLACES: [&str; 2] = [
            "3/patch/value",
            "4/patch/value/filter_chains/0/filters/0/typed_config/http_filters/2",
        ];
        let value = value.into();
        let operations = PLACES.map(|place| {
            let path = format!("/spec/configPatches/{place}/typed_config/typed_config/{field}");
            json!({"op": "replace", "path": path, "value": value})
        });
        self.patch("EnvoyFilter", "sluice-edge", &json!(operations))
    }

    /// The manifests, as `kubectl apply -k` would apply them.
    ///
    /// # Panics
    /// When `kubectl` does not take them.
    #[must_use]
    pub fn build(&self) -> String {
        let folder = TempDir::with_prefix("sluice-overlay-").unwrap();
        let mesh = climb(folder.path()).join("mesh");
        let path = |name: &str| mesh.join(name).display().to_string();
        let mut components: Vec<_> = self
            .components
            .iter()
            .map(|name| path(&format!("components/{name}")))
            .collect();
        if !self.settings.is_empty() || self.policy.is_some() {
            components.push(path("components/settings"));
        }
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
        if let Some(policy) = &self.policy {
            std::fs::write(folder.path().join("policy.json"), policy).unwrap();
            generators.push(json!({
                "name": "sluice-policy", "namespace": "sluice", "behavior": "replace", "files": ["policy.json"],
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
        build(folder.path(), &kustomization)
    }
}

fn build(folder: &Path, kustomization: &Value) -> String {
    let text = serde_yaml_ng::to_string(kustomization).unwrap();
    std::fs::write(folder.join("kustomization.yaml"), &text).unwrap();
    let output = kubectl().arg("kustomize").arg(folder).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n{text}");
    String::from_utf8(output.stdout).unwrap()
}

/// The way from a folder to the top of the repository: kustomize takes relative paths only.
fn climb(from: &Path) -> PathBuf {
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
