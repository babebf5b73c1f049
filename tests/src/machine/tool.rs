// SPDX-License-Identifier: Apache-2.0
//! Programs and modules that the Makefile has built for the tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use sluice::settings::Runtime;

/// The top of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default()
}

/// The entry point: `SLUICE_BIN`, else built once beside this test binary.
///
/// # Panics
/// When it does not build.
pub fn entry_point() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(given) = std::env::var_os("SLUICE_BIN") {
            return PathBuf::from(given);
        }
        // …/TARGET/PROFILE/deps/e2e-HASH
        let test = std::env::current_exe().unwrap();
        let profile = test.ancestors().nth(2).unwrap();
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build
            .args(["build", "--quiet", "-p", "sluice", "--bin", "sluice"])
            .current_dir(repository());
        build.env("CARGO_TARGET_DIR", profile.parent().unwrap());
        if profile.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success(), "cargo build -p sluice");
        profile.join("sluice")
    })
}

/// The runtime of the filter in this run of the tests: `RUNTIME`, else a Wasm VM.
///
/// # Panics
/// When the runtime does not exist.
#[must_use]
pub fn runtime() -> Runtime {
    let wanted = std::env::var("RUNTIME").unwrap_or_default();
    let wanted = if wanted.is_empty() { "wasm" } else { &wanted };
    let known = Runtime::CHOICES.iter().find(|(name, _)| *name == wanted);
    known.unwrap_or_else(|| panic!("RUNTIME={wanted}")).1
}

/// The module for that runtime.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn module_of(runtime: Runtime) -> PathBuf {
    match runtime {
        Runtime::Wasm => module(),
        Runtime::Native => built(
            "module",
            "SLUICE_NATIVE",
            ".sluice/native/sluice.so",
            "native",
        ),
    }
}

/// The filter's Wasm module: `SLUICE_WASM`, else where the Makefile has put it.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn module() -> PathBuf {
    built("module", "SLUICE_WASM", ".sluice/wasm/sluice.wasm", "wasm")
}

/// The Wasm module that traps on demand: `SLUICE_TRAP_WASM`, else where the Makefile has put it.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn trap_module() -> PathBuf {
    trap_module_of(Runtime::Wasm)
}

/// The module that traps, or panics, on demand.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn trap_module_of(runtime: Runtime) -> PathBuf {
    let (variable, place) = match runtime {
        Runtime::Wasm => ("SLUICE_TRAP_WASM", ".sluice/wasm/sluice-trap.wasm"),
        Runtime::Native => ("SLUICE_TRAP_NATIVE", ".sluice/native/sluice-trap.so"),
    };
    built("module", variable, place, "trap")
}

/// The Envoy binary: `SLUICE_ENVOY`, else where the Makefile has put it.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn envoy() -> PathBuf {
    built("Envoy", "SLUICE_ENVOY", ".sluice/bin/envoy", "test")
}

/// The file `name` in the folder of `variable`.
///
/// # Panics
/// When it is not there.
#[must_use]
pub fn tool(variable: &str, name: &str) -> PathBuf {
    let tool = folder(variable).join(name);
    assert!(tool.is_file(), "no {}: {BY_MAKE}", tool.display());
    tool
}

/// The folder of `variable`.
///
/// # Panics
/// When it is not set.
#[must_use]
pub fn folder(variable: &str) -> PathBuf {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    folder.unwrap_or_else(|| panic!("{variable} is not set: {BY_MAKE}"))
}

/// A file that the Makefile has built: the one that `variable` names, else `place` in the repository. The message of
/// a missing file has `what` it is and the `target` that builds it.
///
/// # Panics
/// When it is not there.
#[must_use]
pub fn built(what: &str, variable: &str, place: &str, target: &str) -> PathBuf {
    let usual = || repository().join(place);
    let file = std::env::var_os(variable).map_or_else(usual, PathBuf::from);
    assert!(
        file.is_file(),
        "no {what} at {}: run `make {target}`, or set {variable}",
        file.display()
    );
    file
}

const BY_MAKE: &str =
    "run these tests by `make test`, `make test-mesh`, `make test-chart` or `make test-image`";
