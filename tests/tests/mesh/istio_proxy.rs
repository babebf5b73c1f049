// SPDX-License-Identifier: Apache-2.0
//! The manifests need only extensions of Envoy that Istio's own build has.

use serde_json::Value;
use sluice_tests::client;
use sluice_tests::eventually;
use sluice_tests::machine::ports::{free_port, loopback};
use sluice_tests::machine::process::Process;
use sluice_tests::machine::tool;
use sluice_tests::mesh::kustomize::{Overlay, names_in};
use std::collections::BTreeSet;
use std::process::Command;
use tempfile::TempDir;

const LIST: &str = include_str!("istio_proxy_extensions.txt");
/// Messages that belong to no extension.
const PLAIN: [&str; 2] = [
    "envoy.config.route.v3.FilterConfig",
    "google.protobuf.Struct",
];
/// Extensions that every build of Envoy has. Envoy's own list does not name them either.
const IN_EVERY_BUILD: [&str; 2] = [
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
    "envoy.filters.http.upstream_codec",
];
/// Extensions that the manifests need by a name that is not a type's name: internal listeners, and the runtime of the
/// filter.
const WITHOUT_A_TYPE: [&str; 3] = [
    "envoy.bootstrap.internal_listener",
    "envoy.io_socket.user_space",
    "envoy.wasm.runtime.v8",
];

/// Names of the extensions in Istio's build.
fn istios() -> BTreeSet<&'static str> {
    let names = LIST.lines().filter(|line| !line.starts_with('#'));
    names.chain(IN_EVERY_BUILD).collect()
}

/// Returns the types of all messages in the patches of an overlay.
fn types(manifests: &str) -> BTreeSet<String> {
    let words = manifests.split([' ', '\n', '\'', '"']);
    let types = words.filter_map(|word| word.strip_prefix("type.googleapis.com/"));
    types.map(str::to_owned).collect()
}

/// Returns the types in every overlay.
fn all_types() -> BTreeSet<String> {
    let overlays = names_in("overlays").into_iter();
    let overlays = overlays.map(|name| Overlay::on(&format!("overlays/{name}")).build());
    overlays.flat_map(|manifests| types(&manifests)).collect()
}

/// The extensions of the tests' Envoy as Envoy lists them: each has a name, and the types that it accepts.
async fn extensions() -> Value {
    let folder = TempDir::new().unwrap();
    let admin = loopback(free_port());
    let address = format!(
        "{{socket_address: {{address: {}, port_value: {}}}}}",
        admin.ip(),
        admin.port()
    );
    let mut command = Command::new(tool::envoy());
    command
        .args(["--disable-hot-restart", "--config-yaml"])
        .arg(format!("{{admin: {{address: {address}}}}}"));
    let _envoy = Process::start(command, &folder.path().join("envoy.log")).unwrap();
    eventually("Envoy", async || client::is_healthy(admin, "/ready").await).await;
    let dump = client::get(admin, "/config_dump").await;
    let dump: Value = serde_json::from_slice(&dump.body).unwrap();
    dump["configs"][0]["bootstrap"]["node"]["extensions"].clone()
}

/// Names of the extensions that accept a message of this type.
fn takers<'a>(extensions: &'a Value, message: &str) -> Vec<&'a str> {
    let extensions = extensions.as_array().unwrap().iter();
    let takers = extensions.filter(|extension| {
        let types = extension["type_urls"].as_array();
        types.is_some_and(|types| types.iter().any(|known| known == message))
    });
    takers
        .map(|extension| extension["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn istios_build_has_every_extension_that_the_manifests_need() {
    let (istios, extensions) = (istios(), extensions().await);
    let types = all_types();
    assert!(types.len() > 15, "{types:?}");
    for message in types.iter().filter(|name| !PLAIN.contains(&name.as_str())) {
        let takers = takers(&extensions, message);
        assert!(
            takers.iter().any(|name| istios.contains(name)),
            "{message}: of {takers:?} Istio's build has none"
        );
    }
    for name in WITHOUT_A_TYPE {
        assert!(istios.contains(name), "{name}");
    }
}

#[tokio::test]
async fn an_extension_that_istios_build_lacks_is_found() {
    let message = "envoy.extensions.filters.http.cache_v2.v3.CacheV2Config";
    let extensions = extensions().await;
    let takers = takers(&extensions, message);
    assert!(!takers.is_empty());
    assert!(takers.iter().all(|name| !istios().contains(name)));
}
