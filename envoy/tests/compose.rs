// SPDX-License-Identifier: Apache-2.0
//! The Compose file: its edge has valid settings and publishes its ports, and the files that it names exist.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

use serde_json::Value;
use sluice::settings::{Settings, docs};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn envoy_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn folder() -> PathBuf {
    envoy_folder().join("compose")
}

fn read(path: &str) -> Value {
    let text = fs::read_to_string(folder().join(path)).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

fn services() -> Vec<(String, Value)> {
    let document = read("compose.yaml");
    let services = document["services"].as_object().unwrap().clone();
    services.into_iter().collect()
}

fn edge() -> Value {
    read("compose.yaml")["services"]["edge"].clone()
}

/// The default of a value in the file: `${NAME:-default}` gives `default`, and `${NAME:+other}` nothing.
fn by_default(value: &str) -> String {
    let mut text = value.to_owned();
    while let Some(start) = text.find("${") {
        let end = start + text[start..].find('}').expect("an end of the variable");
        let default = match text[start..end].split_once(":-") {
            Some((_, default)) => default,
            None => text[start..end]
                .split_once(":+")
                .map(|_| "")
                .expect("a default"),
        };
        text = format!("{}{default}{}", &text[..start], &text[end + 1..]);
    }
    text
}

/// The strings of a list.
fn strings(list: &Value) -> Vec<&str> {
    let items = list.as_array().into_iter().flatten();
    items.map(|item| item.as_str().unwrap()).collect()
}

/// The edge's environment, from the image and from the Compose file.
fn environment() -> HashMap<String, String> {
    let image = fs::read_to_string(envoy_folder().join("image/config.json")).unwrap();
    let image: Value = serde_json::from_str(&image).unwrap();
    let image = strings(&image["Env"]).into_iter().map(|line| {
        let (name, value) = line.split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    });
    let mut environment: HashMap<_, _> = image.collect();
    let edge = edge();
    for (name, value) in edge["environment"].as_object().unwrap() {
        environment.insert(name.clone(), by_default(value.as_str().unwrap()));
    }
    environment
}

fn settings(environment: &HashMap<String, String>) -> Settings {
    Settings::from_lookup(&|name| environment.get(name).map(Into::into)).unwrap()
}

/// The settings of a certificate, whose files are in the folder.
fn certificate(folder: &Path) -> [(String, String); 2] {
    let issued = rcgen::generate_simple_self_signed(["edge.test".to_owned()]).unwrap();
    let files = [
        ("SLUICE_TLS_CERT", issued.cert.pem()),
        ("SLUICE_TLS_KEY", issued.signing_key.serialize_pem()),
    ];
    files.map(|(name, text)| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        (name.to_owned(), path.display().to_string())
    })
}

/// The published ports of the edge's container.
fn published() -> Vec<String> {
    let edge = edge();
    let ports = strings(&edge["ports"]).into_iter();
    ports
        .map(|port| port.rsplit_once(':').unwrap().1.to_owned())
        .collect()
}

#[test]
fn the_edge_takes_each_variable_and_its_value() {
    let environment = environment();
    for name in environment.keys() {
        let row = format!("| `{name}` |");
        assert!(docs::tables().contains(&row), "{name} is no setting");
    }
    settings(&environment);
}

#[test]
fn the_ports_of_clients_and_purges_are_published_and_the_metrics_are_scraped() {
    let mut environment = environment();
    environment.insert("SLUICE_PURGE_TOKEN".into(), "a-token-for-tests-only".into());
    let folder = TempDir::new().unwrap();
    environment.extend(certificate(folder.path()));
    let settings = settings(&environment);
    let purge = settings.purge.address;
    let tls = settings.tls_port.expect("a port for TLS");
    let expected = [
        settings.edge_port.to_string(),
        purge.port().to_string(),
        tls.to_string(),
        format!("{tls}/udp"),
    ];
    assert_eq!(published(), expected);
    let metrics = settings.metrics.expect("a port for the metrics");
    for reached in [purge.ip(), metrics.ip(), settings.bind] {
        assert!(reached.is_unspecified(), "{reached}");
    }
    let prometheus = read("../observability/prometheus-compose.yaml");
    let target = &prometheus["scrape_configs"][0]["static_configs"][0]["targets"][0];
    let expected = format!("edge:{}", metrics.port());
    assert_eq!(target.as_str(), Some(expected.as_str()));
}

#[test]
fn the_edge_speaks_http3_with_a_certificate() {
    let compose = read("compose.yaml");
    let mut environment = environment();
    assert!(!settings(&environment).http3.listens());
    for (name, file) in [
        ("SLUICE_TLS_CERT", "tls_cert"),
        ("SLUICE_TLS_KEY", "tls_key"),
    ] {
        let value = compose["services"]["edge"]["environment"][name].as_str();
        let set = value.and_then(|value| value.split_once(":+"));
        let path = set.unwrap().1.trim_end_matches('}');
        assert_eq!(path, format!("/run/secrets/{file}"));
        let secret = compose["secrets"][file]["file"].as_str().unwrap();
        assert_eq!(by_default(secret), "/dev/null");
    }
    let folder = TempDir::new().unwrap();
    environment.extend(certificate(folder.path()));
    environment.insert("SLUICE_HTTP3".into(), "on".into());
    assert!(settings(&environment).http3.listens());
}

#[test]
fn the_edge_is_this_version_and_its_health_is_watched_as_in_the_image() {
    let edge = edge();
    let image = by_default(edge["image"].as_str().unwrap());
    assert_eq!(image, concat!("sluice:", env!("CARGO_PKG_VERSION")));
    let config = fs::read_to_string(envoy_folder().join("image/config.json")).unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(edge["healthcheck"]["test"], config["Healthcheck"]["Test"]);
    assert_eq!(edge["read_only"], true);
}

#[test]
fn the_image_that_no_registry_has_is_not_pulled_and_the_file_says_how_to_build_it() {
    let policy = edge()["pull_policy"].as_str().unwrap().to_owned();
    assert_eq!(by_default(&policy), "never");
    let text = fs::read_to_string(folder().join("compose.yaml")).unwrap();
    let image = concat!("sluice:", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&format!("No such image: {image}")), "{text}");
    let quick_start = include_str!("../../docs/quick-start.md");
    let build = "tar -C .sluice/image/edge -c . | docker load";
    assert!(text.contains(build) && quick_start.contains(build));
}

#[test]
fn no_other_machine_reaches_a_port_and_every_service_is_pinned_and_confined() {
    for (name, service) in services() {
        for port in strings(&service["ports"]) {
            assert!(port.starts_with("127.0.0.1:"), "{name}: {port}");
        }
        let image = by_default(service["image"].as_str().unwrap());
        let (_, tag) = image.rsplit_once(':').expect("a version");
        assert!(tag.contains(|c: char| c.is_ascii_digit()), "{name}: {tag}");
        assert_eq!(strings(&service["cap_drop"]), ["ALL"], "{name}");
        let options = strings(&service["security_opt"]);
        assert_eq!(options, ["no-new-privileges:true"], "{name}");
        assert!(service["restart"].is_string(), "{name}");
    }
}

#[test]
fn every_file_that_a_container_gets_is_there() {
    for (name, service) in services() {
        let sources = strings(&service["volumes"]).into_iter();
        let sources = sources.map(|volume| volume.split_once(':').unwrap());
        for (source, rest) in sources.filter(|(source, _)| source.starts_with('.')) {
            assert!(folder().join(source).exists(), "{name}: {source}");
            assert!(rest.ends_with(":ro"), "{name}: {source} could be written");
        }
    }
}
