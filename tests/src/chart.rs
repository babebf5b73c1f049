// SPDX-License-Identifier: Apache-2.0
//! The chart: its package, and what Helm makes of it.

use crate::machine::tool::{entry_point, repository, tool};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The Helm that installs: the previous major version in `SLUICE_HELM_FORMER`, else the one that makes packages.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn installer() -> PathBuf {
    let is_former = std::env::var_os("SLUICE_HELM_FORMER").is_some();
    let variable = if is_former {
        "SLUICE_HELM_FORMER"
    } else {
        "SLUICE_HELM"
    };
    tool(variable, "helm")
}

/// The name of the releases.
pub const RELEASE: &str = "www";

/// Packages the chart into a folder, as a release has it, with the image of this repository and of this digest.
///
/// # Panics
/// When it cannot be packaged.
#[must_use]
pub fn package(folder: &Path, image: Option<[&str; 2]>) -> PathBuf {
    let output = Command::new(repository().join(".ci/chart.sh"))
        .arg(tool("SLUICE_HELM", "helm"))
        .args([entry_point(), folder])
        .args(image.into_iter().flatten())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let mut files = std::fs::read_dir(folder).unwrap();
    let file = files.next().expect("a package").unwrap();
    assert!(files.next().is_none());
    file.path()
}

/// The unpacked package that all tests of this process share. It does not ask for a version of Kubernetes, because the
/// API server of the tests is built without its version.
///
/// # Panics
/// When it cannot be packaged.
#[must_use]
pub fn chart() -> &'static Path {
    static CHART: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, chart) = CHART.get_or_init(|| {
        let folder = TempDir::with_prefix("sluice-chart-").unwrap();
        let package = package(folder.path(), None);
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf").arg(package).arg("-C").arg(folder.path());
        assert!(unpack.status().unwrap().success());
        let chart = folder.path().join("sluice");
        let file = chart.join("Chart.yaml");
        let text = std::fs::read_to_string(&file).unwrap();
        let others = text
            .lines()
            .filter(|line| !line.starts_with("kubeVersion:"));
        std::fs::write(&file, others.collect::<Vec<_>>().join("\n")).unwrap();
        (folder, chart)
    });
    chart
}

/// The output of Helm with these arguments, the release, the chart and these values.
///
/// # Panics
/// When Helm cannot be started.
#[must_use]
pub fn helm(arguments: &[&str], values: &Value) -> Output {
    let home = TempDir::with_prefix("sluice-helm-").unwrap();
    let file = home.path().join("values.json");
    std::fs::write(&file, values.to_string()).unwrap();
    let mut command = Command::new(installer());
    command.env_clear().env("HOME", home.path());
    command.args(arguments).arg(RELEASE).arg(chart());
    command.arg("--values").arg(file).output().unwrap()
}

/// The manifests for these values.
///
/// # Errors
/// Helm refuses the values, with this message.
pub fn manifests(namespace: &str, values: &Value) -> Result<String, String> {
    let output = helm(&["template", "--namespace", namespace], values);
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

/// The objects in manifests.
///
/// # Panics
/// When they are no YAML.
#[must_use]
pub fn objects(manifests: &str) -> Vec<Value> {
    let documents = manifests
        .split("\n---\n")
        .filter(|text| text.contains("kind:"));
    documents
        .map(|text| serde_saphyr::from_str(text).unwrap())
        .collect()
}
