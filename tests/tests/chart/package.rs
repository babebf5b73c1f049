// SPDX-License-Identifier: Apache-2.0
//! The package of a release.

use serde_json::json;
use sluice_tests::chart::{installer, package};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The image of the edge that this package installs.
fn image(package: &Path) -> String {
    let sites = json!([{"name": "www", "origin": "s3://my-bucket"}]);
    let output = Command::new(installer())
        .env_clear()
        .env("HOME", package.parent().unwrap())
        .arg("template")
        .arg(package)
        // A Helm that is built without the version of its Kubernetes takes an old one.
        .args(["--kube-version", "1.30.0"])
        .args(["--show-only", "templates/workload.yaml", "--set-json"])
        .arg(format!("sites={sites}"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let manifest = String::from_utf8(output.stdout).unwrap();
    let line = manifest
        .lines()
        .find_map(|line| line.trim().strip_prefix("image: "));
    line.unwrap().to_owned()
}

#[test]
fn two_packages_are_equal_and_install_the_image_of_the_release() {
    let folders = [(); 2].map(|()| TempDir::with_prefix("sluice-package-").unwrap());
    let repository = "registry.example.com/sluice";
    let packages = folders
        .each_ref()
        .map(|folder| package(folder.path(), Some([repository, DIGEST])));
    let [first, second] = packages.each_ref().map(|file| std::fs::read(file).unwrap());
    assert!(first == second, "two packages of one commit differ");
    assert_eq!(image(&packages[0]), format!("{repository}/edge@{DIGEST}"));
}
