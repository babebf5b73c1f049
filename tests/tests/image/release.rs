// SPDX-License-Identifier: Apache-2.0
//! The files of a release.

use serde_json::Value;
use sluice_tests::machine::tool::{entry_point, folder, module, repository, tool};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn release() -> PathBuf {
    folder("SLUICE_RELEASE")
}

/// Path of a file of the release whose name begins with the version.
fn released(rest: &str) -> PathBuf {
    release().join(format!("sluice-{VERSION}-{rest}"))
}

fn run(command: &mut Command) -> String {
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{command:?}: {ended:?}");
    String::from_utf8(ended.stdout).unwrap()
}

/// Unpacks a tar archive into a new folder.
fn unpacked(archive: &Path) -> TempDir {
    let there = TempDir::with_prefix("sluice-release-").unwrap();
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--file").arg(archive);
    run(tar.arg("--directory").arg(there.path()));
    there
}

/// The paths of all files below a folder.
fn files(top: &Path) -> BTreeSet<String> {
    let found = run(Command::new("find")
        .args(["-type", "f", "-printf", "%P\n"])
        .current_dir(top));
    found.lines().map(str::to_owned).collect()
}

#[test]
fn the_checksums_are_of_every_file() {
    let mut sums = Command::new("sha256sum");
    sums.args(["--check", "--strict", "--quiet", "SHA256SUMS"]);
    let _ = run(sums.current_dir(release()));
    let sums = std::fs::read_to_string(release().join("SHA256SUMS")).unwrap();
    let mut named: BTreeSet<_> = sums
        .lines()
        .map(|line| line.split_once("  ").unwrap().1.to_owned())
        .collect();
    assert!(named.insert("SHA256SUMS".to_owned()));
    assert_eq!(named, files(&release()));
}

#[test]
fn the_archive_of_the_image_is_the_layout_that_engines_load() {
    let there = unpacked(&released("image.tar"));
    let layout = release().join("images/edge");
    let _ = run(Command::new("diff").arg("-r").args([there.path(), &layout]));
    let index = std::fs::read_to_string(layout.join("index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    let [image] = &index["manifests"].as_array().unwrap()[..] else {
        panic!("an engine would not know which to load: {index}");
    };
    let name = &image["annotations"]["org.opencontainers.image.ref.name"];
    assert_eq!(name, &format!("sluice:{VERSION}"));
}

#[test]
fn the_module_is_the_one_that_was_built() {
    let released = std::fs::read(release().join("sluice.wasm")).unwrap();
    assert!(released.starts_with(b"\0asm"));
    assert!(released == std::fs::read(module()).unwrap());
}

#[test]
fn the_manifests_and_the_documents_are_there() {
    let kit = unpacked(&release().join(format!("sluice-{VERSION}.tar.gz")));
    let kit = files(kit.path());
    for file in [
        "CHANGELOG.md",
        "mesh/overlays/s3/kustomization.yaml",
        "share/man/man1/sluice.1.gz",
        "share/man/man1/sluice-check.1.gz",
        "share/bash-completion/completions/sluice",
        "share/zsh/vendor-completions/_sluice",
        "share/fish/vendor_completions.d/sluice.fish",
    ] {
        let file = format!("sluice-{VERSION}/{file}");
        assert!(kit.contains(&file), "{file}: {kit:?}");
    }
    let docs = unpacked(&released("docs.tar.gz"));
    let page = format!("sluice-{VERSION}-docs/docs/quick-start.html");
    assert!(docs.path().join(page).is_file());
}

#[test]
fn a_release_for_a_repository_names_the_images_in_it() {
    // A hard link needs the same file system.
    let there = TempDir::new_in(release().parent().unwrap()).unwrap();
    let _ = run(Command::new("cp")
        .args(["--recursive", "--link"])
        .arg(release().join("images"))
        .arg(there.path()));
    let printed = run(Command::new(repository().join(".ci/release.sh"))
        .arg(there.path())
        .arg(entry_point())
        .arg(module())
        .arg(".sluice/book")
        .arg(tool("SLUICE_HELM", "helm"))
        .arg("registry.example.com/sluice"));
    let index = std::fs::read_to_string(release().join("images/edge/index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    let digest = index["manifests"][0]["digest"].as_str().unwrap();
    let image = format!("registry.example.com/sluice/edge:{VERSION}@{digest}");
    assert_eq!(printed.lines().last(), Some(&format!("IMAGE={image}")[..]));
    let kit = unpacked(&there.path().join(format!("sluice-{VERSION}.tar.gz")));
    let (mut modules, mut services) = (0, 0);
    for file in files(kit.path()) {
        let text = std::fs::read(kit.path().join(&file)).unwrap();
        let text = String::from_utf8_lossy(&text);
        for module in text.lines().filter_map(|line| line.strip_prefix("MODULE=")) {
            let expected = format!("oci://registry.example.com/sluice/filter:{VERSION}");
            assert_eq!(module, expected, "{file}");
            modules += 1;
        }
        if file.ends_with("/compose.yaml") {
            assert!(text.contains(&format!("${{IMAGE:-{image}}}")), "{text}");
            assert!(text.contains("${PULL_POLICY:-missing}"), "{text}");
            services += 1;
        }
    }
    assert!(modules > 0 && services == 1);
    let chart = unpacked(&there.path().join(format!("sluice-{VERSION}.tgz")));
    let values = std::fs::read_to_string(chart.path().join("sluice/values.yaml")).unwrap();
    let image = values.lines().find(|line| line.starts_with("image:"));
    let image = image.unwrap();
    for part in ["repository: registry.example.com/sluice/edge,", digest] {
        assert!(image.contains(part), "{part}: {image}");
    }
}
