// SPDX-License-Identifier: Apache-2.0
//! `sluice check`: its messages and its exit status.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The exit status of `sluice check`, and its messages on standard error.
fn check(
    folder: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> (Option<i32>, Vec<String>) {
    let output = Command::new(env!("CARGO_BIN_EXE_sluice"))
        .arg("check")
        .args(arguments)
        .env_clear()
        .envs(variables.iter().copied())
        .current_dir(folder)
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    (
        output.status.code(),
        told.lines().map(str::to_owned).collect(),
    )
}

/// Writes a certificate for these hosts, valid for this number of days, to `NAME.pem` and `NAME.key`.
fn write_certificate(folder: &Path, name: &str, hosts: &[&str], days: u64) {
    let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.not_after = (SystemTime::now() + Duration::from_secs(days * 86_400)).into();
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    std::fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
    std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

/// A bucket's endpoint that answers every request with this status and body.
fn bucket(status: u16, body: &'static str) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4_096]);
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
        }
    });
    url
}

#[test]
fn good_settings_are_checked_without_a_word() {
    let folder = TempDir::new().unwrap();
    let sites = "sites:\n- {name: a, origin: 's3://site'}\n";
    std::fs::write(folder.path().join("sites.yaml"), sites).unwrap();
    for variables in [
        &[][..],
        &[("SLUICE_ORIGIN", "s3://site")],
        &[("SLUICE_SITES", "sites.yaml")],
    ] {
        assert_eq!(
            check(folder.path(), &[], variables),
            (Some(0), vec![]),
            "{variables:?}"
        );
    }
}

#[test]
fn each_problem_is_a_line_and_the_status_is_one() {
    let folder = TempDir::new().unwrap();
    let sites =
        "sites:\n- {name: A, origin: 's3://site'}\n- {name: b, path: b, origin: 's3://site'}\n";
    std::fs::write(folder.path().join("sites.yaml"), sites).unwrap();
    let (code, told) = check(
        folder.path(),
        &[],
        &[("SLUICE_SITES", "sites.yaml"), ("SLUICE_CACHE", "ram")],
    );
    assert_eq!((code, told.len()), (Some(1), 3), "{told:?}");
    assert!(told[0].starts_with("sluice: sites.yaml:2: sites[0].name: \"A\": expected "));
    assert!(told[1].starts_with("sluice: sites.yaml:3: sites[1].path: \"b\": expected "));
    assert_eq!(
        told[2],
        "sluice: SLUICE_CACHE=\"ram\": expected disk or memory"
    );

    std::fs::write(folder.path().join("policy.yaml"), "cache: {tll: 1}\n").unwrap();
    let (code, told) = check(
        folder.path(),
        &[],
        &[
            ("SLUICE_ORIGIN", "s3://site"),
            ("SLUICE_POLICY", "policy.yaml"),
        ],
    );
    assert_eq!((code, told.len()), (Some(1), 1), "{told:?}");
    assert!(
        told[0].starts_with("sluice: SLUICE_POLICY=policy.yaml: cache.tll: unknown field"),
        "{told:?}"
    );
}

#[test]
fn a_certificate_that_ends_soon_is_warned_of_and_one_that_has_ended_is_a_problem() {
    let folder = TempDir::new().unwrap();
    write_certificate(folder.path(), "soon", &["a.test"], 10);
    write_certificate(folder.path(), "late", &["a.test"], 60);
    let sites = |name: &str| {
        let text = format!(
            "sites:\n- {{name: a, origin: 's3://site', hosts: [a.test], tls: {{certificate: {name}.pem, key: {name}.key}}}}\n"
        );
        std::fs::write(folder.path().join("sites.yaml"), text).unwrap();
        check(folder.path(), &[], &[("SLUICE_SITES", "sites.yaml")])
    };
    assert_eq!(sites("late"), (Some(0), vec![]));
    let (code, told) = sites("soon");
    assert_eq!((code, told.len()), (Some(0), 1), "{told:?}");
    assert!(
        told[0].starts_with("sluice: warning: ")
            && told[0]
                .ends_with("soon.pem: the certificate of the site a expires in 9 days: renew it"),
        "{told:?}"
    );
    let one = |key| {
        [
            ("SLUICE_ORIGIN", "s3://site"),
            ("SLUICE_TLS_CERT", "soon.pem"),
            ("SLUICE_TLS_KEY", key),
        ]
    };
    assert_eq!(check(folder.path(), &[], &one("soon.key")).0, Some(0));
    let (code, told) = check(folder.path(), &[], &one("late.key"));
    assert_eq!(code, Some(1));
    assert!(
        told[0].starts_with("sluice: SLUICE_TLS_KEY=\"")
            && told[0].contains("expected the key of the certificate in "),
        "{told:?}"
    );
}

#[test]
fn a_bucket_is_asked_online_only_and_each_with_its_credentials() {
    let folder = TempDir::new().unwrap();
    let refusing = bucket(403, "<Error><Code>InvalidAccessKeyId</Code></Error>");
    let elsewhere = bucket(
        400,
        "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-3</Region></Error>",
    );
    let good = bucket(404, "<Error><Code>NoSuchKey</Code></Error>");
    let keys = "credentials: {access_key_id: KEY, secret_access_key: SECRET}";
    let text = format!(
        "sites:\n\
         - {{name: a, origin: 's3://site', endpoint: '{refusing}', {keys}}}\n\
         - {{name: b, path: /b, origin: 's3://site', endpoint: '{elsewhere}', {keys}}}\n\
         - {{name: c, path: /c, origin: 's3://site', endpoint: '{good}', {keys}}}\n\
         - {{name: d, path: /d, origin: 's3://site', endpoint: 'http://127.0.0.1:1', {keys}}}\n\
         - {{name: e, path: /e, origin: 'http://127.0.0.1:1'}}\n"
    );
    std::fs::write(folder.path().join("sites.yaml"), text).unwrap();
    let variables = [
        ("SLUICE_SITES", "sites.yaml"),
        ("KEY", "k"),
        ("SECRET", "hush"),
    ];
    assert_eq!(check(folder.path(), &[], &variables), (Some(0), vec![]));
    let (code, told) = check(folder.path(), &["--online"], &variables);
    assert_eq!((code, told.len()), (Some(1), 3), "{told:#?}");
    assert_eq!(
        told[0],
        "sluice: site a: the bucket refuses the credentials (403 InvalidAccessKeyId): renew or correct what `credentials` names, or the role"
    );
    assert_eq!(
        told[1],
        "sluice: site b: the bucket is in the region eu-west-3 (400 AuthorizationHeaderMalformed): set region: eu-west-3"
    );
    assert!(
        told[2].starts_with("sluice: site d: no answer from http://127.0.0.1:1: ")
            && told[2].ends_with(": correct `endpoint`, or look at the network"),
        "{told:?}"
    );
    assert!(!told.concat().contains("hush"));
}

#[test]
fn the_second_origin_is_asked_online_with_its_credentials() {
    let folder = TempDir::new().unwrap();
    let good = bucket(404, "<Error><Code>NoSuchKey</Code></Error>");
    let refusing = bucket(403, "<Error><Code>InvalidAccessKeyId</Code></Error>");
    let keys = "credentials: {access_key_id: KEY, secret_access_key: SECRET}";
    let first = format!("origin: 's3://site', endpoint: '{good}', {keys}");
    let text = format!(
        "sites:\n\
         - {{name: a, {first}, failover: {{origin: 's3://copy', endpoint: '{refusing}', {keys}}}}}\n\
         - {{name: b, path: /b, {first}, failover: {{origin: 's3://copy', endpoint: '{good}', {keys}}}}}\n\
         - {{name: d, path: /d, {first}, failover: {{origin: 'http://127.0.0.1:1'}}}}\n\
         - {{name: e, path: /e, {first}, failover: {{origin: '{refusing}'}}}}\n"
    );
    std::fs::write(folder.path().join("sites.yaml"), text).unwrap();
    let variables = [
        ("SLUICE_SITES", "sites.yaml"),
        ("KEY", "k"),
        ("SECRET", "hush"),
    ];
    let (code, told) = check(folder.path(), &["--online"], &variables);
    assert_eq!((code, told.len()), (Some(1), 2), "{told:#?}");
    assert_eq!(
        told[0],
        "sluice: site a: the second origin: the bucket refuses the credentials (403 InvalidAccessKeyId): renew or \
         correct what `failover.credentials` names, or the role"
    );
    assert!(
        told[1]
            .starts_with("sluice: site d: the second origin: no answer from http://127.0.0.1:1: ")
            && told[1].ends_with(": correct `failover.origin`, or look at the network"),
        "{told:?}"
    );

    let of_one = [
        ("SLUICE_ORIGIN", "s3://site"),
        ("SLUICE_S3_ENDPOINT", good.as_str()),
        ("AWS_ACCESS_KEY_ID", "k"),
        ("AWS_SECRET_ACCESS_KEY", "hush"),
        ("SLUICE_FAILOVER_ORIGIN", "s3://copy"),
        ("SLUICE_FAILOVER_ENDPOINT", refusing.as_str()),
        ("SLUICE_FAILOVER_ACCESS_KEY_ID", "other"),
        ("SLUICE_FAILOVER_SECRET_ACCESS_KEY", "hush"),
    ];
    let (code, told) = check(folder.path(), &["--online"], &of_one);
    assert_eq!((code, told.len()), (Some(1), 1), "{told:#?}");
    assert!(
        told[0].starts_with("sluice: the second origin: the bucket refuses the credentials")
            && told[0].contains("SLUICE_FAILOVER_ACCESS_KEY_ID, "),
        "{told:?}"
    );
}

#[test]
fn the_keys_of_an_issuer_are_fetched_online() {
    let folder = TempDir::new().unwrap();
    let good = bucket(200, r#"{"keys": [{"kty": "EC", "x": "a"}]}"#);
    for (jwks, problem) in [
        (good, ""),
        (bucket(200, "<html>"), "expected a JWK Set in JSON"),
        (bucket(404, ""), "status 404 Not Found: expected 200"),
        (
            "http://127.0.0.1:1".to_owned(),
            "no answer from http://127.0.0.1:1",
        ),
    ] {
        let rules = format!(
            "any_of: [{{jwt: {{issuer: 'https://id.test', audiences: [docs], jwks: '{jwks}/keys'}}}}]\n"
        );
        std::fs::write(folder.path().join("access.yaml"), rules).unwrap();
        let origin = "http://127.0.0.1:1";
        let variables = [("SLUICE_ORIGIN", origin), ("SLUICE_ACCESS", "access.yaml")];
        let (_, told) = check(folder.path(), &["--online"], &variables);
        let told: Vec<_> = told
            .iter()
            .filter(|line| line.contains("correct `jwks`"))
            .collect();
        assert_eq!(told.len(), usize::from(!problem.is_empty()), "{told:#?}");
        assert!(told.iter().all(|line| line.contains(problem)), "{told:#?}");
        // Without a network nothing is fetched.
        let (_, told) = check(folder.path(), &[], &variables);
        assert!(
            !told.iter().any(|line| line.contains("correct `jwks`")),
            "{told:#?}"
        );
    }
}

#[test]
fn a_bucket_with_credentials_of_the_standard_chain_is_not_asked_without_an_edge() {
    let folder = TempDir::new().unwrap();
    let variables = [("SLUICE_ORIGIN", "s3://site"), ("SLUICE_EDGE_PORT", "1")];
    let (code, told) = check(folder.path(), &["--online"], &variables);
    assert_eq!((code, told.len()), (Some(0), 1), "{told:?}");
    assert!(
        told[0].starts_with("sluice: warning: the bucket has not been asked: "),
        "{told:?}"
    );
}

#[test]
fn the_file_on_the_page_of_sites_is_good() {
    let page = include_str!("../../docs/sites.md");
    let (_, block) = page.split_once("```yaml\n# sites.yaml\n").unwrap();
    let (file, _) = block.split_once("```").unwrap();
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("certs")).unwrap();
    let hosts = ["assets.example.com", "*.cdn.example.com"];
    write_certificate(folder.path(), "certs/assets", &hosts, 60);
    std::fs::write(folder.path().join("shop.yaml"), "cache: {}\n").unwrap();
    std::fs::write(folder.path().join("sites.yaml"), file).unwrap();
    let variables = [
        ("SLUICE_SITES", "sites.yaml"),
        ("ASSETS_KEY", "k"),
        ("ASSETS_SECRET", "s"),
    ];
    assert_eq!(check(folder.path(), &[], &variables), (Some(0), vec![]));
}

/// The exit status of `sluice check --json`, and the findings on standard output.
fn check_json(folder: &Path, variables: &[(&str, &str)]) -> (Option<i32>, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_sluice"))
        .args(["check", "--json"])
        .env_clear()
        .envs(variables.iter().copied())
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{output:?}");
    let findings = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code(), findings)
}

#[test]
fn a_finding_in_json_has_the_place_of_the_field() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("sites.yaml", "sites:\n- {name: A, origin: 's3://site'}\n");
    let variables = [("SLUICE_SITES", "sites.yaml"), ("SLUICE_CACHE", "ram")];
    let (code, findings) = check_json(folder.path(), &variables);
    assert_eq!(code, Some(1));
    let place = |finding: &Value| {
        let keys = ["level", "field", "file", "line"];
        json!(keys.map(|key| finding[key].clone()))
    };
    let list = findings.as_array().unwrap();
    let places: Vec<_> = list.iter().map(place).collect();
    let expected = [
        json!(["error", "sites[0].name", "sites.yaml", 2]),
        json!(["error", "SLUICE_CACHE", null, null]),
    ];
    assert_eq!(places, expected);
    let message = "SLUICE_CACHE=\"ram\": expected disk or memory";
    assert_eq!(findings[1]["message"], message);

    write("policy.yaml", "store: {}\ncache:\n  tll: 1\n");
    let variables = [
        ("SLUICE_ORIGIN", "s3://site"),
        ("SLUICE_POLICY", "policy.yaml"),
    ];
    let (code, findings) = check_json(folder.path(), &variables);
    let expected = json!(["error", "cache.tll", "policy.yaml", 3]);
    assert_eq!((code, place(&findings[0])), (Some(1), expected));
    write("policy.yaml", "cache: [\n");
    let (_, findings) = check_json(folder.path(), &variables);
    assert_eq!(findings[0]["file"], "policy.yaml", "{findings}");
    assert!(findings[0]["line"].is_u64(), "{findings}");
}

#[test]
fn warnings_in_json_leave_the_status_at_zero_and_no_finding_is_an_empty_array() {
    let folder = TempDir::new().unwrap();
    write_certificate(folder.path(), "soon", &["a.test"], 10);
    let variables = [
        ("SLUICE_ORIGIN", "s3://site"),
        ("SLUICE_TLS_CERT", "soon.pem"),
        ("SLUICE_TLS_KEY", "soon.key"),
    ];
    let (code, findings) = check_json(folder.path(), &variables);
    assert_eq!((code, &findings[0]["level"]), (Some(0), &json!("warning")));
    assert!(findings[0]["file"].as_str().unwrap().ends_with("soon.pem"));
    let (code, findings) = check_json(folder.path(), &variables[..1]);
    assert_eq!((code, findings), (Some(0), json!([])));
}

#[test]
fn access_rules_that_open_too_much_are_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "k".repeat(32)).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let rules = "any_of: [{signed: {keys: {a: {file: key}}}}]\nexcept: ['/*', '*.css']\n";
    std::fs::write(folder.path().join("access.yaml"), rules).unwrap();
    let variables = [("ORIGIN", "http://127.0.0.1:1"), ("ACCESS", "access.yaml")];
    let (status, told) = check(folder.path(), &[], &variables);
    let told = told.join("\n");
    assert_eq!(status, Some(0), "{told}");
    for expected in [
        "signatures and cookies are sent in clear",
        "except: \"/*\" opens every path",
        "except: \"*.css\" also opens pages",
        "other users can read the secrets in",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    let users = folder.path().join("users");
    std::fs::write(&users, "ada:$2y$05$0123456789\n").unwrap();
    let rules = "any_of: [{basic: {users: users}}, {forward: {url: 'http://a/', ca: none.pem}}]\n";
    std::fs::write(folder.path().join("access.yaml"), rules).unwrap();
    let (status, told) = check(folder.path(), &[], &variables);
    let told = told.join("\n");
    assert_eq!(status, Some(1), "{told}");
    for expected in [
        "any_of[0].basic.users: ",
        "line 1: user \"ada\": a hash of bcrypt",
        "any_of[1].forward.ca: expected a URL with https",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    assert!(!told.contains("0123456789"), "{told}");
    std::fs::write(&users, "ada:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n").unwrap();
    let rules = "any_of: [{basic: {users: users}}, {forward: {url: 'http://a/'}}]\n";
    std::fs::write(folder.path().join("access.yaml"), rules).unwrap();
    let (status, told) = check(folder.path(), &[], &variables);
    let told = told.join("\n");
    assert_eq!(status, Some(0), "{told}");
    for expected in [
        "passwords are sent in clear",
        "cookies of sessions are sent in clear",
        "other users can read the secrets in",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    let rules = "any_of: [{signed: {keys: {a: {file: key}}}}]\n";
    std::fs::write(folder.path().join("access.yaml"), rules).unwrap();
    std::fs::write(&key, "short").unwrap();
    let (status, told) = check(folder.path(), &[], &variables);
    let told = told.join("\n");
    assert_eq!(status, Some(1), "{told}");
    let expected = "any_of[0].signed.keys.a: expected a key of 32 to 1024 bytes: it has 5";
    assert!(told.contains(expected) && !told.contains("short"), "{told}");
}

#[test]
fn keys_of_an_issuer_that_cannot_be_read_or_that_others_can_replace_are_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().unwrap();
    let keys = folder.path().join("jwks.json");
    let variables = [("ORIGIN", "http://127.0.0.1:1"), ("ACCESS", "access.yaml")];
    let checked = |jwks: &str| {
        let rules = format!(
            "any_of: [{{jwt: {{issuer: 'https://id.test', audiences: [docs], jwks: '{jwks}'}}}}]\n"
        );
        std::fs::write(folder.path().join("access.yaml"), rules).unwrap();
        let (status, told) = check(folder.path(), &[], &variables);
        (status, told.join("\n"))
    };
    let (status, told) = checked("jwks.json");
    assert_eq!(status, Some(1), "{told}");
    assert!(told.contains("any_of[0].jwt.jwks: "), "{told}");
    assert!(told.contains("jwks.json"), "{told}");
    std::fs::write(&keys, r#"{"keys": [{"kty": "oct", "k": "hush"}]}"#).unwrap();
    let (status, told) = checked("jwks.json");
    assert_eq!(status, Some(1), "{told}");
    assert!(told.contains("keys[0].kty: \"oct\""), "{told}");
    assert!(!told.contains("hush"), "{told}");
    std::fs::write(&keys, r#"{"keys": [{"kty": "EC", "x": "a"}]}"#).unwrap();
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o646)).unwrap();
    let (status, told) = checked("jwks.json");
    assert_eq!(status, Some(0), "{told}");
    assert!(told.contains("tokens are sent in clear"), "{told}");
    assert!(
        told.contains("other users can replace the keys in"),
        "{told}"
    );
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (_, told) = checked("jwks.json");
    assert!(!told.contains("other users can replace"), "{told}");
    let (status, told) = checked("http://id.test/keys");
    assert_eq!(status, Some(0), "{told}");
    assert!(told.contains("are fetched in clear"), "{told}");
}

#[test]
fn a_bucket_that_should_have_been_moved_is_reminded_of() {
    let folder = TempDir::new().unwrap();
    let told = |until: &str| {
        let text = format!(
            "sites:\n- name: a\n  origin: s3://new\n  failover: {{origin: 's3://old', on_missing: true, until: {until}}}\n"
        );
        std::fs::write(folder.path().join("sites.yaml"), text).unwrap();
        check(folder.path(), &[], &[("SLUICE_SITES", "sites.yaml")])
    };
    assert_eq!(told("2999-01-31"), (Some(0), vec![]));
    let (status, lines) = told("2020-01-31");
    assert_eq!((status, lines.len()), (Some(0), 1), "{lines:?}");
    let start = "warning: on_missing of the site a should have ended on 2020-01-31: ";
    assert!(lines[0].contains(start), "{lines:?}");
}

#[test]
fn the_permission_that_listings_need_is_shown() {
    let folder = TempDir::new().unwrap();
    let policy = "key: {index_document: i}\nwebsite: {listing: {prefixes: [/pub/*, /ü/*]}}\n";
    std::fs::write(folder.path().join("policy.yaml"), policy).unwrap();
    let variables = [
        ("SLUICE_ORIGIN", "s3://site/a b"),
        ("SLUICE_POLICY", "policy.yaml"),
    ];
    let (code, told) = check(folder.path(), &[], &variables);
    let line = told.iter().find(|line| line.contains("website.listing"));
    let line = line.unwrap_or_else(|| panic!("{told:?}"));
    let (_, statement) = line.split_once(": {").expect("a statement");
    let statement: Value = serde_json::from_str(&format!("{{{statement}")).unwrap();
    let expected = json!({
        "Effect": "Allow",
        "Action": "s3:ListBucket",
        "Resource": "arn:aws:s3:::site",
        "Condition": {"StringLike": {"s3:prefix": ["a b/pub/*", "a b/ü/*"]}},
    });
    assert_eq!((code, statement), (Some(0), expected));
}
