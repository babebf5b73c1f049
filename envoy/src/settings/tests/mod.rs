// SPDX-License-Identifier: Apache-2.0

mod aws;
mod memory;
mod names;
mod secrets;
mod sites;
mod tracing;

use std::ffi::OsString;

use super::*;
use crate::origin::Addressing;

/// A machine with this memory and number of cores.
fn machine(memory_bytes: u64, cores: u32) -> Machine {
    Machine {
        memory_bytes,
        cores,
        connections: 50_000,
    }
}

fn read_on(machine: Machine, variables: &[(&str, &str)]) -> anyhow::Result<Settings> {
    let find = |name: &str| variables.iter().find(|(each, _)| *each == name);
    Settings::on_machine(machine, &|name| find(name).map(|(_, value)| value.into()))
}

fn read(variables: &[(&str, &str)]) -> anyhow::Result<Settings> {
    read_on(machine(16 << 30, 8), variables)
}

fn problems(variables: &[(&str, &str)]) -> Vec<String> {
    let error = read(variables).expect_err("bad settings");
    error.to_string().lines().map(str::to_owned).collect()
}

#[test]
fn a_state_folder_has_room_for_the_socket_in_it() {
    let fits = format!("/{}", "s".repeat(89));
    let settings = read(&[
        ("SLUICE_ORIGIN", "s3://site"),
        ("SLUICE_STATE", &fits),
        ("SLUICE_EDGE_PORT", "65535"),
    ]);
    assert_eq!(settings.unwrap().admin_socket().as_os_str().len(), 107);
    let long = fits + "s";
    let problems = problems(&[("SLUICE_ORIGIN", "s3://site"), ("SLUICE_STATE", &long)]);
    let expected = format!(
        "SLUICE_STATE={long:?}: expected a folder whose absolute path has at most 90 bytes"
    );
    assert!(
        problems.len() == 1 && problems[0].starts_with(&expected),
        "{problems:?}"
    );
    assert!(problems[0].ends_with("has 91"), "{problems:?}");
}

#[test]
fn nothing_set_is_the_demo_with_the_documented_defaults() {
    let settings = read(&[]).unwrap();
    assert_eq!(settings.origin, None);
    assert_eq!(settings.bind.to_string(), "127.0.0.1");
    assert_eq!(settings.edge_port, 8080);
    assert!(
        settings
            .admin_socket()
            .ends_with(".sluice/state/admin-8080.sock")
    );
    assert_eq!(settings.tls, None);
    assert_eq!(settings.health_path, "/healthz");
    assert_eq!(settings.cache.medium, Medium::Disk);
    assert!(settings.cache.dir.ends_with(".sluice/state/cache"));
    assert_eq!(settings.cache.max_bytes, 1 << 30);
    assert_eq!(settings.cache.max_object_bytes, 16 << 20);
    assert_eq!(settings.hot.max_bytes, 32 << 20);
    assert_eq!(settings.hot.max_object_bytes, 64 << 10);
    assert_eq!(settings.cache.max_entries, 100_000);
    assert_eq!(settings.concurrency, 8, "all cores");
    assert_eq!(settings.credentials, credentials::environment(false));
    assert!(settings.filter);
}

#[test]
fn large_objects_are_stored_in_slices() {
    let slices = read(&[]).unwrap().slices;
    let default = serde_json::json!({"bytes": 1 << 20});
    assert_eq!(slices.policy_section(), default);
    let set = [
        ("SLUICE_SLICE_BYTES", "1MiB"),
        ("SLUICE_SLICE_AHEAD", "2"),
        ("SLUICE_SLICE_KNOWN", "*.iso, /films/*"),
        ("SLUICE_SLICE_MAX_OBJECT_BYTES", "8GiB"),
    ];
    let known = ["*.iso", "/films/*"];
    let section = serde_json::json!({
        "bytes": 1 << 20, "ahead": 2, "known": known, "max_object_bytes": 8_u64 << 30,
    });
    assert_eq!(read(&set).unwrap().slices.policy_section(), section);
    let too_large = problems(&[
        ("SLUICE_SLICE_BYTES", "2MiB"),
        ("SLUICE_CACHE_MAX_OBJECT_BYTES", "1MiB"),
    ]);
    let expected =
        "SLUICE_SLICE_BYTES=\"2MiB\": expected at most SLUICE_CACHE_MAX_OBJECT_BYTES, 1MiB";
    assert_eq!(too_large, [expected]);
}

#[test]
fn slices_fit_into_the_cache_unless_a_setting_gives_their_size() {
    let bytes = |cache: &[(&str, &str)]| read(cache).unwrap().slices.bytes;
    for (cache, object, expected) in [
        ("1GiB", "", 1 << 20),
        ("32MiB", "", 512 << 10),
        ("16MiB", "", 256 << 10),
        ("15MiB", "", 0),
        ("1GiB", "300KiB", 300 << 10),
        ("1GiB", "255KiB", 0),
    ] {
        let bounds = [
            ("SLUICE_CACHE_MAX_BYTES", cache),
            ("SLUICE_CACHE_MAX_OBJECT_BYTES", object),
        ];
        assert_eq!(bytes(&bounds), expected, "{cache} {object}");
    }
    assert_eq!(bytes(&[("SLUICE_SLICE_BYTES", "0")]), 0);
}

#[test]
fn a_cache_without_room_for_the_slices_is_worth_a_notice() {
    let notices = |slice, bytes, entries| {
        let set = [
            ("SLUICE_SLICE_BYTES", slice),
            ("SLUICE_CACHE_MAX_BYTES", bytes),
            ("SLUICE_CACHE_MAX_ENTRIES", entries),
            ("SLUICE_CONCURRENCY", "2"),
        ];
        read(&set).unwrap().notices.join("\n")
    };
    for (slice, bytes, entries) in [
        ("", "1GiB", "1024"),
        ("1MiB", "8MiB", "8"),
        ("0", "8MiB", "1"),
    ] {
        assert_eq!(notices(slice, bytes, entries), "", "{bytes}");
    }
    let few_entries = notices("", "1GiB", "1023");
    assert!(
        few_entries.contains("room for 1024 slices"),
        "{few_entries}"
    );
    for (bytes, entries) in [("7MiB", "100000"), ("7MiB", "7"), ("1GiB", "7")] {
        let small = notices("1MiB", bytes, entries);
        assert!(small.contains("2 workers should have 8"), "{small}");
    }
}

#[test]
fn an_empty_variable_counts_as_unset() {
    assert_eq!(
        read(&[("SLUICE_ORIGIN", ""), ("SLUICE_EDGE_PORT", "")])
            .unwrap()
            .edge_port,
        8080
    );
}

#[test]
fn what_kubernetes_sets_for_a_service_counts_as_unset_and_is_told() {
    let links = [
        ("SLUICE_EDGE_PORT", "tcp://10.0.0.1:80", "sluice-edge"),
        (
            "SLUICE_EDGE_TLS_PORT",
            "tcp://[fd00::1]:443",
            "sluice-edge-tls",
        ),
        ("SLUICE_PURGE_PORT", "tcp://10.0.0.2:8081", "sluice-purge"),
        (
            "SLUICE_METRICS_PORT",
            "udp://10.0.0.3:9901",
            "sluice-metrics",
        ),
    ];
    let variables = links.map(|(name, value, _)| (name, value));
    let settings = read(&variables).unwrap();
    let ports = (settings.edge_port, settings.tls_port, settings.metrics);
    assert_eq!(ports, (8080, None, None));
    assert_eq!(settings.purge.address.port(), 8081);
    let told = links.map(|(name, value, service)| {
        format!(
            "{name}={value:?}: not a setting, as Kubernetes has set it for the Service {service:?}"
        )
    });
    for line in &told {
        assert!(settings.notices.contains(line), "{:?}", settings.notices);
    }
    assert_eq!(settings.notices.len(), told.len());
    let wrong = problems(&[("SLUICE_METRICS_PORT", "tcp://metrics:80")]);
    assert!(wrong[0].contains("1 to 65535"), "{wrong:?}");
}

#[test]
fn a_bucket_is_at_aws_unless_there_is_an_endpoint() {
    let bucket = |variables: &[(&str, &str)]| match read(variables).unwrap().origin {
        Some(Origin::Bucket(bucket)) => bucket,
        other => panic!("{other:?}"),
    };
    let aws = bucket(&[
        ("SLUICE_ORIGIN", "s3://site/a/b/"),
        ("AWS_REGION", "eu-west-1"),
    ]);
    assert_eq!(
        aws.endpoint.to_string(),
        "https://site.s3.eu-west-1.amazonaws.com"
    );
    assert_eq!(
        (aws.prefix.as_str(), aws.addressing),
        ("a/b", Addressing::VirtualHost)
    );
    let own = bucket(&[
        ("SLUICE_ORIGIN", "s3://site"),
        ("SLUICE_S3_ENDPOINT", "http://minio:9000"),
    ]);
    assert_eq!(own.endpoint.to_string(), "http://minio:9000");
    assert_eq!(
        (own.region.as_str(), own.addressing),
        ("us-east-1", Addressing::Path)
    );
}

#[test]
fn the_user_may_say_where_a_buckets_name_stands() {
    let bucket = |variables: &[(&str, &str)]| match read(variables).unwrap().origin {
        Some(Origin::Bucket(bucket)) => bucket.endpoint.to_string(),
        other => panic!("{other:?}"),
    };
    let site = ("SLUICE_ORIGIN", "s3://site");
    let own = ("SLUICE_S3_ENDPOINT", "https://s3.test");
    let by_host = ("SLUICE_S3_ADDRESSING", "virtual_host");
    assert_eq!(bucket(&[site, own, by_host]), "https://site.s3.test");
    let aws = bucket(&[site, ("SLUICE_S3_ADDRESSING", "path")]);
    assert_eq!(aws, "https://s3.us-east-1.amazonaws.com");
    let address = ("SLUICE_S3_ENDPOINT", "http://127.0.0.1:9000");
    let refused = problems(&[site, address, by_host]);
    let expected = "SLUICE_S3_ADDRESSING=\"virtual_host\": expected path, or SLUICE_S3_ENDPOINT to have a name";
    assert!(
        refused.len() == 1 && refused[0].starts_with(expected),
        "{refused:?}"
    );
    let refused = problems(&[site, ("SLUICE_S3_ADDRESSING", "subdomain")]);
    let expected = "SLUICE_S3_ADDRESSING=\"subdomain\": expected path or virtual_host";
    assert_eq!(refused, [expected]);
}

#[test]
fn a_memory_cache_is_made_on_dev_shm() {
    let cache = read(&[("SLUICE_CACHE", "memory")]).unwrap().cache;
    assert_eq!(
        (cache.medium, cache.dir),
        (Medium::Memory, PathBuf::from("/dev/shm"))
    );
}

/// Settings, values that they refuse, and a part of what they accept.
const BAD_VALUES: &[(&str, &str, &str)] = &[
    (
        "SLUICE_ORIGIN",
        "example.com",
        "s3://BUCKET[/PREFIX], http://HOST[:PORT]",
    ),
    ("SLUICE_ORIGIN", "s3://Site", "valid bucket name"),
    (
        "SLUICE_ORIGIN",
        "s3://site/../other",
        "without empty, . or .. segments",
    ),
    (
        "SLUICE_ORIGIN",
        "http://example.com/path",
        "http://HOST[:PORT]",
    ),
    ("AWS_REGION", "us east", "a region"),
    ("SLUICE_BIND", "localhost", "an IPv4 or IPv6 address"),
    ("SLUICE_EDGE_PORT", "0", "1 to 65535"),
    ("SLUICE_EDGE_PORT", "http", "1 to 65535"),
    ("SLUICE_PURGE_PORT", "65536", "1 to 65535"),
    (
        "SLUICE_TRUSTED_HOPS",
        "all",
        "a number of proxies from 0 to 16",
    ),
    (
        "SLUICE_RATE_LIMIT_PER_ADDRESS",
        "10/s",
        "a number from 0 to 1000000",
    ),
    ("SLUICE_PROXY_PROTOCOL", "v2", "off, optional or on"),
    ("SLUICE_HTTP3", "h3", "off, on or clear"),
    ("SLUICE_HTTP3_PORT", "0", "a port from 1 to 65535"),
    ("SLUICE_REDIRECT_TO_HTTPS", "always", "on or off"),
    (
        "SLUICE_HSTS",
        "31536000",
        "a duration of whole seconds such as 365d",
    ),
    ("SLUICE_METRICS_PORT", "off", "1 to 65535"),
    (
        "SLUICE_CACHE_RESERVE",
        "5GB",
        "0, 1% to 50%, or a number of bytes",
    ),
    (
        "SLUICE_CACHE_RESERVE",
        "60%",
        "0, 1% to 50%, or a number of bytes",
    ),
    (
        "SLUICE_METRICS_BIND",
        "localhost",
        "an IPv4 or IPv6 address",
    ),
    ("SLUICE_STATS", "none", "few or all"),
    ("SLUICE_STATS_SITES", "few", "on or off"),
    ("SLUICE_ACCESS_LOG", "yes", "text, combined, json or off"),
    (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "collector:4318",
        "https://HOST[:PORT][/PATH]",
    ),
    ("OTEL_RESOURCE_ATTRIBUTES", "a", "NAME=VALUE"),
    ("OTEL_SDK_DISABLED", "yes", "on or off"),
    ("OTEL_TRACES_SAMPLER_ARG", "1.5", "a ratio from 0 to 1"),
    ("OTEL_TRACES_SAMPLER_ARG", "NaN", "a ratio from 0 to 1"),
    ("SLUICE_LOG_FORMAT", "xml", "text or json"),
    ("SLUICE_ACCESS_LOG_HITS", "1.5", "a share from 0 to 1"),
    (
        "SLUICE_ACCESS_LOG_FORMAT",
        "a\nb",
        "a line without control characters",
    ),
    ("OTEL_SERVICE_NAME", "a\u{7}", "visible characters"),
    ("SLUICE_HEALTH_PATH", "healthz", "a path"),
    ("SLUICE_HEALTH_PATH", "/", "a path"),
    ("SLUICE_HEALTH_PATH", "/a b", "a path"),
    ("SLUICE_MIN_DRAIN_SECONDS", "3601", "seconds"),
    ("SLUICE_DRAIN_SECONDS", "1h", "seconds"),
    ("SLUICE_S3_RETRIES", "11", "0 to 10"),
    (
        "SLUICE_ORIGIN_KEEPALIVE",
        "99ms",
        "a duration from 100ms to 1h",
    ),
    (
        "SLUICE_ORIGIN_KEEPALIVE",
        "61m",
        "a duration from 100ms to 1h",
    ),
    (
        "SLUICE_ORIGIN_KEEPALIVE",
        "4",
        "a duration from 100ms to 1h",
    ),
    ("SLUICE_CACHE_NAME", "a b", "a letter, and at most 63"),
    ("SLUICE_VIA", "no", "on or off"),
    (
        "SLUICE_S3_CHECK",
        "yes",
        "on or off (true or false, 1 or 0)",
    ),
    ("SLUICE_CACHE", "ram", "disk or memory"),
    ("SLUICE_CACHE_MAX_BYTES", "1GB", "KiB, MiB, GiB"),
    ("SLUICE_CACHE_MAX_BYTES", "0", "KiB, MiB, GiB"),
    ("SLUICE_CACHE_MAX_ENTRIES", "0", "1 to 1000000000"),
    (
        "SLUICE_CACHE_MAX_OBJECT_BYTES",
        "2GiB",
        "at most SLUICE_CACHE_MAX_BYTES, 1GiB",
    ),
    (
        "SLUICE_SLICE_BYTES",
        "1KiB",
        "0, or a number of bytes from 256KiB to 16MiB",
    ),
    (
        "SLUICE_SLICE_BYTES",
        "1GiB",
        "0, or a number of bytes from 256KiB to 16MiB",
    ),
    ("SLUICE_SLICE_AHEAD", "9", "a number of slices from 0 to 8"),
    (
        "SLUICE_SLICE_KNOWN",
        "*.iso,a b",
        "paths that begin with / or *",
    ),
    ("SLUICE_SLICE_MAX_OBJECT_BYTES", "0", "KiB, MiB, GiB"),
    (
        "SLUICE_HOT_BYTES",
        "2GiB",
        "0, or a number of bytes to 1GiB",
    ),
    ("SLUICE_HOT_BYTES", "off", "0, or a number of bytes to 1GiB"),
    ("SLUICE_HOT_OBJECT_BYTES", "0", "from 1 to 1GiB"),
    ("SLUICE_DECISIONS", "65537", "from 0 to 65536"),
    ("SLUICE_POLICY", "/no/such/file", "a file that can be read"),
    ("SLUICE_POLICY", "/", "a folder"),
    ("SLUICE_CONCURRENCY", "0", "1 to 512"),
    ("SLUICE_CONCURRENCY", "+2", "1 to 512"),
    ("SSL_CERT_FILE", "/no/such/file", "a file that can be read"),
];

#[test]
fn each_bad_value_is_told_with_its_name_and_what_is_accepted() {
    for (name, value, accepted) in BAD_VALUES {
        let problems = problems(&[(name, value)]);
        let [problem] = problems.as_slice() else {
            panic!("{name}={value}: {problems:?}")
        };
        let start = format!("{name}={value:?}: expected ");
        assert!(
            problem.starts_with(&start) && problem.contains(accepted),
            "{problem}"
        );
    }
}

#[test]
fn an_own_format_of_the_access_log_is_text() {
    for format in ["combined", "json", "off"] {
        let own = ("SLUICE_ACCESS_LOG_FORMAT", "%REQ(:PATH)%");
        let problems = problems(&[("SLUICE_ACCESS_LOG", format), own]);
        let expected =
            format!("SLUICE_ACCESS_LOG={format:?}: expected text, or no SLUICE_ACCESS_LOG_FORMAT");
        assert_eq!(problems, [expected]);
    }
}

#[test]
fn what_belongs_together_is_asked_for_together() {
    for (variables, missing) in [
        (
            &[("SLUICE_TLS_CERT", "/dev/null")] as &[_],
            "SLUICE_TLS_KEY: must be set",
        ),
        (
            &[("SLUICE_TLS_KEY", "/dev/null")],
            "SLUICE_TLS_CERT: must be set",
        ),
        (
            &[("SLUICE_EDGE_TLS_PORT", "8443")],
            "SLUICE_EDGE_TLS_PORT: needs SLUICE_TLS_CERT and SLUICE_TLS_KEY",
        ),
        (
            &[("SLUICE_PROXY_PROTOCOL", "on")],
            "SLUICE_PROXY_PROTOCOL_FROM: must be set, as SLUICE_PROXY_PROTOCOL is",
        ),
        (
            &[("SLUICE_PROXY_PROTOCOL_FROM", "10.0.0.0/8")],
            "SLUICE_PROXY_PROTOCOL_FROM: must be unset, or SLUICE_PROXY_PROTOCOL be on or optional",
        ),
        (
            &[("SLUICE_HTTP3", "on")],
            "SLUICE_HTTP3: needs a certificate: SLUICE_TLS_CERT and SLUICE_TLS_KEY",
        ),
        (
            &[("SLUICE_HTTP3", "clear")],
            "SLUICE_HTTP3: needs a certificate: SLUICE_TLS_CERT and SLUICE_TLS_KEY",
        ),
        (
            &[("SLUICE_HTTP3_PORT", "443")],
            "SLUICE_HTTP3_PORT: must be unset, or SLUICE_HTTP3 be on",
        ),
        (
            &[
                ("SLUICE_HTTP3", "on"),
                ("SLUICE_TLS_CERT", "/dev/null"),
                ("SLUICE_TLS_KEY", "/dev/null"),
                ("SLUICE_PROXY_PROTOCOL", "on"),
                ("SLUICE_PROXY_PROTOCOL_FROM", "10.0.0.0/8"),
            ],
            "SLUICE_HTTP3: must be off, as SLUICE_PROXY_PROTOCOL is set",
        ),
        (
            &[("SLUICE_REDIRECT_TO_HTTPS", "on")],
            "SLUICE_REDIRECT_TO_HTTPS: needs SLUICE_TLS_CERT and SLUICE_TLS_KEY, or SLUICE_TRUSTED_HOPS",
        ),
        (
            &[("SLUICE_HSTS", "1d")],
            "SLUICE_HSTS: needs SLUICE_TLS_CERT and SLUICE_TLS_KEY, or SLUICE_TRUSTED_HOPS",
        ),
        (
            &[("AWS_ACCESS_KEY_ID", "k")],
            "AWS_SECRET_ACCESS_KEY: must be set",
        ),
        (
            &[("AWS_SECRET_ACCESS_KEY", "s")],
            "AWS_ACCESS_KEY_ID: must be set",
        ),
        (
            &[("AWS_SESSION_TOKEN", "t")],
            "AWS_SESSION_TOKEN: must be unset",
        ),
        (
            &[("SLUICE_S3_ENDPOINT", "http://minio:9000")],
            "SLUICE_S3_ENDPOINT=\"http://minio:9000\": expected to be unset",
        ),
        (
            &[("SLUICE_METRICS_PORT", "8080")],
            "SLUICE_METRICS_PORT=\"8080\": expected another port than SLUICE_EDGE_PORT's",
        ),
    ] {
        let problems = problems(variables);
        assert!(
            problems.len() == 1 && problems[0].starts_with(missing),
            "{variables:?}: {problems:?}"
        );
    }
}

#[test]
fn ports_may_not_be_the_same() {
    let tls = [
        ("SLUICE_TLS_CERT", "/dev/null"),
        ("SLUICE_TLS_KEY", "/dev/null"),
        ("SLUICE_EDGE_TLS_PORT", "8080"),
    ];
    assert_eq!(
        problems(&tls),
        ["SLUICE_EDGE_TLS_PORT=\"8080\": expected another port than SLUICE_EDGE_PORT's"]
    );
}

#[test]
fn all_problems_are_told_at_once() {
    let bad = [
        ("SLUICE_ORIGIN", "x"),
        ("SLUICE_BIND", "x"),
        ("SLUICE_EDGE_PORT", "x"),
        ("SLUICE_CACHE", "x"),
        ("SLUICE_STATS", "x"),
        ("SLUICE_CONCURRENCY", "x"),
    ];
    let problems = problems(&bad);
    for (name, _) in bad {
        assert!(
            problems.iter().any(|problem| problem.starts_with(name)),
            "{name}: {problems:?}"
        );
    }
    assert_eq!(problems.len(), bad.len());
}

#[test]
fn a_secret_with_a_line_end_or_an_outer_blank_is_refused_by_its_name() {
    let keys = [
        ("SLUICE_ORIGIN", "s3://site"),
        ("AWS_ACCESS_KEY_ID", "hush"),
        ("AWS_SECRET_ACCESS_KEY", "hush"),
        ("AWS_SESSION_TOKEN", "hush"),
        ("SLUICE_PURGE_TOKEN", "hush-hush-hush-hush"),
    ];
    assert!(read(&keys).is_ok());
    for (name, value) in keys.into_iter().skip(1) {
        for wrong in [
            format!("{value}\n"),
            format!("{value}\r\n"),
            format!("{value} "),
            format!("\t{value}"),
            format!("{value}\u{1}{value}"),
        ] {
            let with_wrong = keys.map(|key| {
                if key.0 == name {
                    (name, wrong.as_str())
                } else {
                    key
                }
            });
            let error = read(&with_wrong).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name}: must ")), "{error}");
            assert!(
                error.lines().count() == 1 && !error.contains("hush"),
                "{error}"
            );
        }
    }
}

#[test]
fn secrets_are_never_repeated() {
    let error = read(&[
        ("AWS_SECRET_ACCESS_KEY", "hush"),
        ("AWS_SESSION_TOKEN", "hush"),
    ])
    .unwrap_err();
    assert!(!error.to_string().contains("hush"));
}

#[test]
fn a_role_signs_where_no_key_is_set() {
    let of_role = read(&[("SLUICE_ORIGIN", "s3://site")]).unwrap();
    assert_eq!(of_role.credentials, Credentials::Chain);
    let keys = [
        ("SLUICE_ORIGIN", "s3://site"),
        ("AWS_ACCESS_KEY_ID", "k"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
    ];
    let of_key = read(&keys).unwrap();
    assert_eq!(of_key.credentials, credentials::environment(false));
}

#[cfg(unix)]
#[test]
fn a_value_that_is_no_text_is_told_too() {
    use std::os::unix::ffi::OsStringExt as _;
    let error = Settings::from_lookup(&|name| {
        (name == "SLUICE_CACHE").then(|| OsString::from_vec(vec![b'v', 0xff]))
    });
    assert!(error.unwrap_err().to_string().starts_with("SLUICE_CACHE="));
}

#[test]
fn a_second_origin_is_read_from_settings_of_its_own() {
    let one = [
        ("SLUICE_ORIGIN", "s3://site"),
        ("AWS_REGION", "eu-west-1"),
        ("SLUICE_FAILOVER_ORIGIN", "s3://copy/x"),
        ("SLUICE_FAILOVER_ENDPOINT", "http://127.0.0.1:9000"),
        ("SLUICE_FAILOVER_ACCESS_KEY_ID", "id"),
        ("SLUICE_FAILOVER_SECRET_ACCESS_KEY", "hush"),
        ("SLUICE_FAILOVER_TTL", "5s"),
    ];
    let settings = read(&one).unwrap();
    let failover = settings.failover.unwrap();
    assert_eq!(
        failover.origin.to_string(),
        "s3://copy/x at http://127.0.0.1:9000"
    );
    assert_eq!(failover.times.ttl, Duration::from_secs(5));
    let Credentials::Environment {
        access_key_id,
        session_token,
        ..
    } = failover.credentials
    else {
        panic!("{:?}", failover.credentials)
    };
    assert_eq!(
        (access_key_id.as_str(), session_token),
        ("SLUICE_FAILOVER_ACCESS_KEY_ID", None)
    );
    let secret = settings
        .secrets
        .variable("SLUICE_FAILOVER_SECRET_ACCESS_KEY");
    assert_eq!(secret, Some("hush".into()));
    // Envoy gets the key in a file.
    assert!(settings.secrets.variables().next().is_none());
    assert!(read(&one[..2]).unwrap().failover.is_none());
}

#[test]
fn wrong_settings_of_a_second_origin_are_refused() {
    for (name, value, expected) in [
        ("SLUICE_FAILOVER_ORIGIN", "ftp://a", "s3://BUCKET[/PREFIX]"),
        ("SLUICE_FAILOVER_TTL", "soon", "a duration of whole seconds"),
        (
            "SLUICE_FAILOVER_AFTER_SILENCE",
            "61s",
            "a duration from 50ms to 60s",
        ),
        ("SLUICE_FAILOVER_REGION", "mars one", "a region"),
        (
            "SLUICE_FAILOVER_ACCESS_KEY_ID",
            "id",
            "SLUICE_FAILOVER_SECRET_ACCESS_KEY",
        ),
        (
            "SLUICE_FAILOVER_UNTIL",
            "2027-01-31",
            "SLUICE_FAILOVER_ON_MISSING",
        ),
    ] {
        let variables = [
            ("SLUICE_ORIGIN", "s3://site"),
            ("SLUICE_FAILOVER_ORIGIN", "s3://copy"),
            (name, value),
        ];
        let variables: Vec<_> = match name {
            "SLUICE_FAILOVER_ORIGIN" => vec![variables[0], variables[2]],
            _ => variables.to_vec(),
        };
        let error = read(&variables)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(error.contains(expected), "{name}={value}: {error}");
    }
    let http = [
        ("SLUICE_ORIGIN", "http://a.test"),
        ("SLUICE_FAILOVER_ORIGIN", "s3://copy"),
    ];
    assert!(
        read(&http)
            .unwrap_err()
            .to_string()
            .contains("the first origin is not a bucket")
    );
    let server = [
        ("SLUICE_ORIGIN", "s3://site"),
        ("SLUICE_FAILOVER_ORIGIN", "http://a.test"),
        ("SLUICE_FAILOVER_REGION", "eu-west-1"),
    ];
    assert!(
        read(&server)
            .unwrap_err()
            .to_string()
            .contains("SLUICE_FAILOVER_REGION: must be unset")
    );
}
