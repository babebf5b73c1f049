// SPDX-License-Identifier: Apache-2.0
//! The rendered configuration: Envoy accepts it, and it matches the settings.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sluice::cache::EarlierRuns;
use sluice::render::{Run, one_site, render, render_whole};
use sluice::settings::Settings;
use sluice_core::policy::LargeUrl;
use support::modules::{self, DEAD};
use support::{envoy, exchange, free_port, native_module, status};

/// A self-signed certificate for localhost, and its key.
const CERT: &str = include_str!("support/localhost.crt");
const KEY: &str = include_str!("support/localhost.key");

fn settings(variables: &[(&str, &str)]) -> Settings {
    let find = |name: &str| variables.iter().rev().find(|(each, _)| *each == name);
    Settings::from_lookup(&|name| find(name).map(|(_, value)| value.into())).unwrap()
}

fn rendered(settings: &Settings) -> String {
    render(
        settings,
        settings.origin.as_ref().unwrap(),
        Path::new("/cache"),
    )
    .unwrap()
}

fn parsed(settings: &Settings) -> Value {
    serde_saphyr::from_str(&rendered(settings)).unwrap()
}

/// Panics unless Envoy would start with this configuration.
fn validate(folder: &Path, settings: &Settings) {
    let cache = folder.join("cache");
    let config = render(settings, settings.origin.as_ref().unwrap(), &cache).unwrap();
    let path = folder.join("envoy.yaml");
    std::fs::write(&path, &config).unwrap();
    let output = Command::new(envoy())
        .args(["--mode", "validate", "--log-level", "warning", "-c"])
        .arg(&path)
        .output();
    let output = output.unwrap();
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{settings:?}\n{says}\n{config}");
    assert!(!says.contains("eprecated"), "{says}");
}

#[test]
fn envoy_takes_every_kind_of_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let (module, native) = (modules::write(folder.path(), DEAD), native_module());
    let (cert, key) = (folder.path().join("cert"), folder.path().join("key"));
    std::fs::write(&cert, CERT).unwrap();
    std::fs::write(&key, KEY).unwrap();
    let tls = [
        ("SLUICE_TLS_CERT", cert.to_str().unwrap()),
        ("SLUICE_TLS_KEY", key.to_str().unwrap()),
    ];
    let keys = [("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")];
    let origins: [&[(&str, &str)]; 6] = [
        &[
            ("SLUICE_ORIGIN", "s3://site/a b"),
            ("SLUICE_S3_ENDPOINT", "http://127.0.0.1:9000"),
        ],
        &[("SLUICE_ORIGIN", "s3://site"), ("SSL_CERT_FILE", tls[0].1)],
        &[
            ("SLUICE_ORIGIN", "s3://site"),
            ("SLUICE_S3_ENDPOINT", "https://minio.test"),
            ("SSL_CERT_FILE", tls[0].1),
        ],
        &[
            ("SLUICE_ORIGIN", "http://127.0.0.1:8000"),
            ("SLUICE_SLICE_BYTES", "0"),
        ],
        &[
            ("SLUICE_ORIGIN", "https://example.com"),
            ("SSL_CERT_FILE", tls[0].1),
        ],
        &[
            ("SLUICE_ORIGIN", "https://[::1]:8443"),
            ("SSL_CERT_FILE", tls[0].1),
            ("SLUICE_BIND", "::1"),
            ("SLUICE_METRICS_BIND", "::1"),
            ("SLUICE_METRICS_PORT", "9902"),
            ("SLUICE_STATS", "all"),
            ("SLUICE_ACCESS_LOG", "json"),
            ("SLUICE_LOG_FORMAT", "json"),
            ("SLUICE_PURGE_TOKEN", "0123456789abcdef"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://[::1]:4318/otlp"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=hush"),
            ("OTEL_RESOURCE_ATTRIBUTES", "zone=a,rack=b"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.5"),
        ],
    ];
    let mut kinds: Vec<Vec<(&str, &str)>> = origins
        .iter()
        .map(|origin| [origin, tls.as_slice()].concat())
        .collect();
    kinds.push([origins[0], keys.as_slice()].concat());
    kinds.push(vec![("SLUICE_ORIGIN", "http://example.com")]);
    for second in ["s3://copy/a.b", "http://copy.example.com"] {
        kinds.push(vec![
            ("SLUICE_ORIGIN", "s3://site/a"),
            ("SLUICE_S3_ENDPOINT", "http://127.0.0.1:9000"),
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:9001"),
            ("SLUICE_FAILOVER_ORIGIN", second),
            ("SLUICE_FAILOVER_ON_MISSING", "on"),
        ]);
    }
    kinds.push(vec![
        ("SLUICE_ORIGIN", "http://example.com"),
        ("SLUICE_FAILOVER_ORIGIN", "http://copy.example.com"),
    ]);
    kinds.push(vec![
        ("SLUICE_ORIGIN", "http://example.com"),
        ("SLUICE_ACCESS_LOG", "combined"),
        ("SLUICE_ACCESS_LOG_HITS", "0.01"),
        ("SLUICE_PURGE_TOKEN", "0123456789abcdef"),
    ]);
    for variables in kinds {
        let mut settings = settings(
            &[
                variables.as_slice(),
                &[
                    ("SLUICE_WASM", module.to_str().unwrap()),
                    ("SLUICE_NATIVE", native.to_str().unwrap()),
                ],
            ]
            .concat(),
        );
        validate(folder.path(), &settings);
        settings.filter = false;
        validate(folder.path(), &settings);
    }
}

#[test]
fn no_value_breaks_out_of_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let odd = "a\"b: {c}\n- d # {{ 7 * 7 }} {% raw %} 'e'\\";
    let path = folder.path().join(odd);
    std::fs::write(&path, "").unwrap();
    let path = path.to_str().unwrap();
    let settings = settings(&[
        ("SLUICE_ORIGIN", "http://example.com"),
        ("SLUICE_TLS_CERT", path),
        ("SLUICE_TLS_KEY", path),
        ("SLUICE_WASM", path),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
        (
            "OTEL_SERVICE_NAME",
            "a\"b: {c} %REQ(X)% # {{ 7 * 7 }} 'e'\\",
        ),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "a\"b:{c}#{{7}}='%0ab: c' # {{ 7 * 7 }}",
        ),
    ]);
    let config = parsed(&settings);
    let tls = &config["static_resources"]["listeners"][1]["filter_chains"][0]["transport_socket"];
    let chain =
        &tls["typed_config"]["common_tls_context"]["tls_certificates"][0]["certificate_chain"];
    assert_eq!(chain["filename"].as_str(), Some(path));
}

#[test]
fn without_the_filter_there_is_a_bare_cache_and_nothing_of_the_filters() {
    let mut settings = settings(&[("SLUICE_ORIGIN", "http://127.0.0.1:8000")]);
    settings.filter = false;
    let config = rendered(&settings);
    for part in ["wasm", "guard", "sluice_background", "next_turn"] {
        let code = config
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'));
        assert!(!code.into_iter().any(|line| line.contains(part)), "{part}");
    }
}

#[test]
fn the_store_has_room_until_the_entry_point_says_otherwise() {
    let config = parsed(&settings(&[
        ("SLUICE_ORIGIN", "http://127.0.0.1:8000"),
        ("STORE", "v1"),
    ]));
    let layers = config["layered_runtime"]["layers"].as_array().unwrap();
    assert!(layers.iter().any(|layer| layer["admin_layer"].is_object()));
    let listeners = config["static_resources"]["listeners"].as_array().unwrap();
    for name in ["edge", "sluice_background", "sluice_slice"] {
        let listener = listeners.iter().find(|it| it["name"] == name);
        let manager = &listener.unwrap()["filter_chains"][0]["filters"][0]["typed_config"];
        let routes = manager["route_config"]["virtual_hosts"][0]["routes"].as_array();
        let is_for_no_room = |route: &&Value| {
            let name = route["name"].as_str();
            name.is_some_and(|name| name.ends_with("+no_room"))
        };
        let route = routes.unwrap().iter().find(is_for_no_room);
        let route = route.unwrap_or_else(|| panic!("{name}"));
        let fraction = &route["match"]["runtime_fraction"];
        assert_eq!(fraction["runtime_key"], "sluice.no_room");
        assert_eq!(fraction["default_value"]["numerator"], 0);
    }
}

#[test]
fn sites_have_statistics_with_their_names_or_all_together() {
    let folder = tempfile::tempdir().unwrap();
    let sites = folder.path().join("sites.yaml");
    let site = |name: &str| {
        format!("- {{name: {name}, hosts: [{name}.test], origin: \"http://127.0.0.1:8000\"}}\n")
    };
    std::fs::write(&sites, format!("sites:\n{}{}", site("a"), site("b"))).unwrap();
    let rendered = |choice: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_sluice"))
            .arg("render")
            .env_clear()
            .env("SLUICE_SITES", &sites)
            .env("SLUICE_STATS_SITES", choice)
            .env("SLUICE_WASM", modules::write(folder.path(), DEAD))
            .env("SLUICE_NATIVE", native_module())
            .env("SLUICE_ENVOY", envoy())
            .env("SLUICE_STATE", folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (own, together) = (rendered("on"), rendered("off"));
    assert!(own.contains("alt_stat_name: \"origin_server.site.a\"\n"));
    assert!(!own.contains("metrics_label"));
    assert_eq!(
        together.matches("alt_stat_name: origin_server\n").count(),
        2
    );
    assert!(together.contains("\"metrics_label\": false"));
}

#[test]
fn only_a_listener_on_the_unspecified_ipv6_address_takes_clients_of_both_families() {
    for (bind, both) in [("::", true), ("::1", false), ("0.0.0.0", false)] {
        let config = parsed(&settings(&[
            ("SLUICE_ORIGIN", "http://127.0.0.1:8000"),
            ("SLUICE_PURGE_TOKEN", "0123456789abcdef"),
            ("SLUICE_BIND", bind),
            ("SLUICE_PURGE_BIND", bind),
        ]));
        let listeners = config["static_resources"]["listeners"].as_array();
        let addresses = listeners.unwrap().iter().filter_map(|listener| {
            let address = &listener["address"]["socket_address"];
            (address["address"].as_str()? == bind).then(|| address["ipv4_compat"].as_bool())
        });
        let expected = both.then_some(true);
        assert_eq!(addresses.collect::<Vec<_>>(), [expected; 2], "{bind}");
    }
}

#[test]
fn the_filters_control_listener_is_a_socket_of_the_edges_user_and_no_port() {
    for runtime in ["wasm", "native"] {
        let settings = settings(&[
            ("SLUICE_ORIGIN", "http://127.0.0.1:8000"),
            ("SLUICE_RUNTIME", runtime),
        ]);
        let config = parsed(&settings);
        let listeners = config["static_resources"]["listeners"].as_array().unwrap();
        let control = listeners.iter().find(|it| it["name"] == "control").unwrap();
        let socket = settings.filter_control_socket();
        let pipe = serde_json::json!({"pipe": {"path": socket, "mode": 0o600}});
        assert_eq!(control["address"], pipe);
        assert_eq!(socket.parent(), Some(&*settings.locations.state));
        let manager = &control["filter_chains"][0]["filters"][0]["typed_config"];
        let filters = manager["http_filters"].as_array().unwrap().iter();
        let names: Vec<_> = filters.map(|filter| &filter["name"]).collect();
        assert_eq!(names, ["sluice.control", "router"]);
    }
}

#[test]
fn an_https_origin_is_verified_by_its_name() {
    let config = parsed(&settings(&[
        ("SLUICE_ORIGIN", "https://example.com"),
        ("SSL_CERT_FILE", "/dev/null"),
    ]));
    let clusters = config["static_resources"]["clusters"].as_array().unwrap();
    let tls = &clusters.last().unwrap()["transport_socket"]["typed_config"];
    assert_eq!(tls["sni"].as_str(), Some("example.com"));
    let context = &tls["common_tls_context"]["validation_context"];
    assert_eq!(
        context["trusted_ca"]["filename"].as_str(),
        Some("/dev/null")
    );
    assert_eq!(
        context["match_typed_subject_alt_names"][0]["matcher"]["exact"].as_str(),
        Some("example.com")
    );
}

#[test]
fn there_are_listeners_for_slices_unless_their_size_is_0() {
    const LISTENERS: [&str; 2] = ["sluice_slices", "sluice_slice"];
    let text = rendered(&settings(&[
        ("SLUICE_ORIGIN", "s3://site"),
        ("SLUICE_SLICE_BYTES", "0"),
    ]));
    assert!(LISTENERS.iter().all(|name| !text.contains(name)));
    for runtime in ["wasm", "native"] {
        let config = parsed(&settings(&[
            ("SLUICE_ORIGIN", "s3://site"),
            ("SLUICE_RUNTIME", runtime),
        ]));
        for (kind, name) in ["listeners", "clusters"].iter().zip(LISTENERS) {
            let all = config["static_resources"][kind].as_array().unwrap();
            let found = all.iter().any(|it| it["name"].as_str() == Some(name));
            assert!(found, "{runtime}: {kind}: {name}");
        }
        let carriers = "slc-8080.sock";
        assert!(config.to_string().contains(carriers), "{runtime}");
    }
}

#[test]
fn the_policy_stands_in_it_whole() {
    let config = parsed(&settings(&[
        ("SLUICE_ORIGIN", "s3://site/a"),
        ("SLUICE_CACHE_MAX_OBJECT_BYTES", "1MiB"),
    ]));
    let policy = policy_in(&config);
    assert_eq!(policy["origin"]["prefix"].as_str(), Some("a"));
    assert_eq!(policy["store"]["max_object_bytes"].as_u64(), Some(1 << 20));
}

/// The policy of EDGE in a configuration.
fn policy_in(config: &Value) -> Value {
    let filters = &config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
        ["http_filters"];
    let edge = filters
        .as_array()
        .unwrap()
        .iter()
        .find(|filter| filter["name"].as_str() == Some("sluice.edge"))
        .unwrap();
    let text = &edge["typed_config"]["config"]["configuration"]["value"];
    serde_json::from_str(text.as_str().unwrap()).unwrap()
}

#[test]
fn the_urls_of_stored_slices_stand_in_the_policy() {
    let settings = settings(&[
        ("SLUICE_ORIGIN", "s3://site"),
        ("SLUICE_SLICE_BYTES", "1MiB"),
    ]);
    let sites = one_site(&settings, settings.origin.as_ref().unwrap()).unwrap();
    let earlier_runs = EarlierRuns {
        large_urls: vec![LargeUrl(7), LargeUrl(8)],
        ..EarlierRuns::default()
    };
    let run = Run {
        cache_dir: Path::new("/cache"),
        purge_log: None,
        earlier_runs: &earlier_runs,
        sns: None,
        feed: None,
        secret: None,
    };
    let text = render_whole(&settings, &sites, run).unwrap();
    let policy = policy_in(&serde_saphyr::from_str(&text).unwrap());
    let expected = ["0000000000000007", "0000000000000008"];
    assert_eq!(
        policy["store"]["slices"]["stored"],
        serde_json::json!(expected)
    );
}

#[test]
fn an_origin_that_stops_answering_ends_what_bypasses_the_cache_with_504() {
    let folder = tempfile::tempdir().unwrap();
    let origin = support::origin::Origin::start();
    let port = free_port().to_string();
    let mut settings = settings(&[
        ("SLUICE_ORIGIN", &origin.url()),
        ("SLUICE_EDGE_PORT", &port),
        ("SLUICE_STATE", folder.path().to_str().unwrap()),
    ]);
    settings.filter = false;
    settings.origin_idle = std::time::Duration::from_millis(500);
    validate(folder.path(), &settings);
    let mut process = Command::new(envoy());
    process.args([
        "--disable-hot-restart",
        "--log-level",
        "error",
        "--concurrency",
        "1",
        "-c",
    ]);
    let process = process
        .arg(folder.path().join("envoy.yaml"))
        .spawn()
        .unwrap();
    let _envoy = KilledOnDrop(process);
    support::eventually("ready", || {
        std::net::TcpStream::connect(("127.0.0.1", settings.edge_port)).is_ok()
    });
    support::eventually("healthy", || {
        status(&support::get(settings.edge_port, "/healthz")) == 200
    });
    assert_eq!(
        status(&exchange(settings.edge_port, "POST /stalled", "")),
        504
    );
}

/// A process that is killed when this is dropped.
struct KilledOnDrop(std::process::Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a line of a configuration names a pair of origins or one of its origins.
fn mentions_pairs(config: &str) -> bool {
    [
        "origin_pair",
        "origin_first",
        "origin_second",
        "x-sluice-attempt",
        "x-sluice-missing",
    ]
    .iter()
    .any(|name| config.contains(name))
}

#[test]
fn a_site_without_a_second_origin_is_as_if_there_were_none() {
    for origin in ["s3://site/a", "http://example.com"] {
        let plain = [("SLUICE_ORIGIN", origin), ("SLUICE_S3_CHECK", "off")];
        let second = match origin.starts_with("s3") {
            true => "s3://copy",
            false => "http://copy.example.com",
        };
        let endpoint = ("AWS_ENDPOINT_URL", "http://127.0.0.1:9000");
        let without = rendered(&settings(&[plain[0], plain[1], endpoint]));
        let with = rendered(&settings(&[
            plain[0],
            plain[1],
            endpoint,
            ("SLUICE_FAILOVER_ORIGIN", second),
        ]));
        assert!(!mentions_pairs(&without) && mentions_pairs(&with));
        // The control: every line of the plain configuration is in the other one, apart from the server of the first
        // origin, which has another bound on the time for a connection and another script.
        let lines: Vec<_> = with.lines().map(str::trim).collect();
        let gone: Vec<_> = without
            .lines()
            .map(str::trim)
            .filter(|line| !lines.contains(line))
            .collect();
        assert!(
            gone.iter().all(|line| OF_ONE_ORIGIN.contains(line)),
            "{gone:#?}"
        );
    }
}

/// Lines of the server of an origin without a second one.
const OF_ONE_ORIGIN: [&str; 4] = [
    "connect_timeout: 5s",
    r#"local pause = headers:get("retry-after")"#,
    "if pause and (tonumber(pause) or 3) > 2 then",
    r#"headers:replace("x-envoy-ratelimited", "true")"#,
];
