// SPDX-License-Identifier: Apache-2.0

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, KeyPair};
use serde_json::json;
use sluice_core::policy::purge::TokenHash;
use tempfile::TempDir;

use super::*;
use crate::origin::Origin;

/// A folder for the file of sites and the files that it names.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with(self, name: &str, text: &str) -> Self {
        std::fs::write(self.path().join(name), text).unwrap();
        self
    }

    /// Adds a certificate for these names, valid for this number of days, in `NAME.pem` and `NAME.key`.
    fn with_certificate(self, name: &str, hosts: &[&str], days: i64) -> Self {
        let hosts = hosts
            .iter()
            .map(|host| (*host).to_owned())
            .collect::<Vec<_>>();
        let mut params = CertificateParams::new(hosts).unwrap();
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap();
        let now = i64::try_from(now.as_secs()).unwrap();
        let at = |days: i64| {
            rcgen::date_time_ymd(1970, 1, 1)
                + Duration::from_secs(u64::try_from(now + days * 86_400).unwrap())
        };
        (params.not_before, params.not_after) = (at(days.min(0) - 1), at(days));
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        self.with(&format!("{name}.pem"), &certificate.pem())
            .with(&format!("{name}.key"), &key.serialize_pem())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn read(&self, text: &str) -> Result<Sites, Vec<String>> {
        self.read_behind(text, false)
    }

    fn read_behind(&self, text: &str, behind_proxy: bool) -> Result<Sites, Vec<String>> {
        let file = self.path().join("sites.yaml");
        std::fs::write(&file, text).unwrap();
        let surroundings = Surroundings {
            lookup: &variable,
            region: "eu-west-1",
            endpoint: None,
            purge_token: variable("SLUICE_PURGE_TOKEN")
                .and_then(|token| hash_of_token(token.to_str()?)),
            behind_proxy,
            now: SystemTime::now(),
        };
        let folder = format!("{}/", self.path().display());
        let sites = Sites::read(&file.to_string_lossy(), surroundings);
        sites.map_err(|problems| {
            let lines = problems.iter().map(ToString::to_string);
            lines.map(|line| line.replace(&folder, "")).collect()
        })
    }

    fn problems(&self, text: &str) -> Vec<String> {
        self.read(text).expect_err("bad sites")
    }

    /// Expects exactly one problem of a site with this line beside its name and its origin. The problem must begin
    /// with `start`.
    #[track_caller]
    fn refuses(&self, line: &str, expected: &str) {
        let origin = if line.starts_with("origin") {
            ""
        } else {
            "\n  origin: s3://site"
        };
        let name = if line.starts_with("name") {
            ""
        } else {
            "\n  name: a"
        };
        let problems = self.problems(&format!("sites:\n- {line}{name}{origin}\n"));
        let expected = format!("sites.yaml:2: sites[0].{expected}");
        assert!(
            problems.len() == 1 && problems[0].starts_with(&expected),
            "{line}: {problems:#?}, not {expected}"
        );
    }
}

fn variable(name: &str) -> Option<OsString> {
    let value = match name {
        "KEY" => "key",
        "SECRET" => "hush",
        "TOKEN" => "correct-horse-battery",
        "SHORT" => "short-secret",
        "EMPTY" => "",
        _ => return None,
    };
    Some(value.into())
}

const FULL: &str = "\
edge: {limits: {waiters_per_key: 5}, coalesce: {lease: 5s}}
sites:
- name: assets
  hosts: [Assets.example.com, '*.cdn.example.com']
  path: /static
  origin: s3://my-bucket/site
  endpoint: https://minio.example.com
  region: eu-central-1
  addressing: path
  credentials: {access_key_id: KEY, secret_access_key: SECRET, session_token: TOKEN}
  policy: spa
  tls: {certificate: assets.pem, key: assets.key}
  redirect_to_https: true
  hsts: {max_age: 365d, include_subdomains: true, preload: true}
  share: 2
  purge_token: TOKEN
- name: rest
  origin: http://127.0.0.1:3000
  policy: rest.yaml
- name: files
  hosts: [files.example.com]
  origin: s3://files
  credentials: {file: keys, profile: files}
  policy: {cache: {ttl: {200: 1h}}}
";

fn full() -> Folder {
    Folder::new()
        .with_certificate("assets", &["assets.example.com", "*.cdn.example.com"], 90)
        .with("rest.yaml", "cache: {ttl: {default: 1s}}\n")
        .with(
            "keys",
            "[files]\naws_access_key_id = a\naws_secret_access_key = b\n",
        )
}

#[test]
fn a_file_lists_sites_with_all_that_they_have() {
    let folder = full();
    let sites = folder.read(FULL).unwrap();
    assert_eq!(
        sites.edge,
        json!({"limits": {"waiters_per_key": 5}, "coalesce": {"lease": "5s"}})
    );
    let [assets, rest, files] = sites.sites.as_slice() else {
        panic!("{sites:?}")
    };
    assert_eq!(assets.name, "assets");
    assert_eq!(assets.hosts, ["assets.example.com", "*.cdn.example.com"]);
    assert_eq!(assets.path.as_deref(), Some("/static"));
    let Origin::Bucket(bucket) = &assets.origin else {
        panic!("{assets:?}")
    };
    assert_eq!(bucket.region, "eu-central-1");
    assert_eq!(
        assets.origin.to_string(),
        "s3://my-bucket/site at https://minio.example.com"
    );
    assert_eq!(
        assets.credentials,
        Credentials::Environment {
            access_key_id: "KEY".into(),
            secret_access_key: "SECRET".into(),
            session_token: Some("TOKEN".into()),
        }
    );
    assert_eq!(assets.policy_name, "spa");
    assert!(assets.policy.get("cache").is_some() && assets.policy.get("origin").is_none());
    let certificate = assets.certificate.as_ref().unwrap();
    assert_eq!(certificate.chain, folder.path().join("assets.pem"));
    assert!(assets.redirect_to_https);
    assert_eq!(
        assets.hsts.as_deref(),
        Some("max-age=31536000; includeSubDomains; preload")
    );
    assert_eq!(assets.share, 2);
    assert_eq!(
        assets.purge_token,
        Some(TokenHash::of(b"correct-horse-battery"))
    );
    assert!(assets.secret_variables.contains(&"TOKEN".to_owned()));
    assert!(rest.hosts.is_empty() && rest.path.is_none() && rest.certificate.is_none());
    assert_eq!((rest.share, rest.hsts.as_deref()), (1, None));
    assert_eq!(rest.policy, json!({"cache": {"ttl": {"default": "1s"}}}));
    assert_eq!(
        files.credentials,
        Credentials::File {
            path: folder.path().join("keys"),
            profile: "files".into()
        }
    );
    assert_eq!(files.policy_name, "sites[2].policy");
}

#[test]
fn a_site_has_a_name_and_an_origin_and_defaults_for_the_rest() {
    let json = r#"{"sites": [{"name": "a", "origin": "s3://site"}]}"#;
    let sites = Folder::new().read(json).unwrap();
    let site = &sites.sites[0];
    assert_eq!(
        site.origin.to_string(),
        "s3://site at https://site.s3.eu-west-1.amazonaws.com"
    );
    assert_eq!(site.credentials, Credentials::Chain);
    assert_eq!(
        (site.policy_name.as_str(), &sites.edge),
        ("bucket", &json!({}))
    );
}

#[test]
fn each_bad_field_is_told_with_its_line_value_and_what_is_accepted() {
    let folder = Folder::new();
    for (line, expected) in [
        (
            "nam: a",
            "nam: unknown field, expected name, hosts, path, origin, ",
        ),
        (
            "name: A",
            "name: \"A\": expected 1 to 63 lower-case letters",
        ),
        ("name: 5", "name: 5: expected 1 to 63 lower-case letters"),
        ("name: a_b", "name: \"a_b\": expected 1 to 63"),
        (
            "hosts: a.test",
            "hosts: \"a.test\": expected a list with at least one item, each a host",
        ),
        (
            "hosts: []",
            "hosts: a list: expected a list with at least one item",
        ),
        (
            "hosts: ['a.test:80']",
            "hosts[0]: \"a.test:80\": expected a host such as",
        ),
        (
            "hosts: [a.test, '[::1]']",
            "hosts[1]: \"[::1]\": expected a host",
        ),
        ("hosts: ['*']", "hosts[0]: \"*\": expected a host"),
        (
            "hosts: ['a*.test']",
            "hosts[0]: \"a*.test\": expected a host",
        ),
        (
            "hosts: [a.test, A.test]",
            "hosts[1]: \"a.test\": expected each host once",
        ),
        (
            "path: static",
            "path: \"static\": expected the beginning of paths",
        ),
        (
            "path: /a/../b",
            "path: \"/a/../b\": expected the beginning of paths",
        ),
        ("path: /a//b", "path: \"/a//b\": expected"),
        ("path: /%61", "path: \"/%61\": expected"),
        ("path: /a/", "path: \"/a/\": expected"),
        (
            "origin: example.com",
            "origin: \"example.com\": expected s3://BUCKET[/PREFIX]",
        ),
        (
            "origin: s3://Site",
            "origin: \"s3://Site\": expected s3://BUCKET[/PREFIX] with a valid bucket name",
        ),
        (
            "endpoint: minio",
            "endpoint: \"minio\": expected http://HOST[:PORT]",
        ),
        ("region: US East", "region: \"US East\": expected a region"),
        (
            "addressing: host",
            "addressing: \"host\": expected path or virtual_host",
        ),
        ("policy: 5", "policy: 5: expected the name of a policy"),
        (
            "policy: none.yaml",
            "policy: \"none.yaml\": expected bucket, http, ",
        ),
        (
            "policy: http",
            "policy: \"http\": expected a policy for this kind of origin",
        ),
        (
            "policy: {cache: {tll: 1}}",
            "policy.cache.tll: unknown field, expected ",
        ),
        (
            "tls: {certificate: a.pem}",
            "tls.key: required, but missing: expected the path of a file",
        ),
        (
            "redirect_to_https: yes",
            "redirect_to_https: \"yes\": expected true or false",
        ),
        (
            "keepalive: 50ms",
            "keepalive: \"50ms\": expected a duration from 100ms to 1h",
        ),
        (
            "hsts: 500ms",
            "hsts: \"500ms\": expected a duration of whole seconds",
        ),
        (
            "hsts: {max_age: soon}",
            "hsts.max_age: \"soon\": expected a duration of whole seconds",
        ),
        (
            "share: 0",
            "share: 0: expected a whole number from 1 to 1000",
        ),
        ("share: 1.5", "share: 1.5: expected a whole number"),
    ] {
        folder.refuses(line, expected);
    }
}

#[test]
fn what_only_a_bucket_has_is_refused_at_an_http_origin() {
    let text =
        "sites:\n- name: a\n  origin: http://a.test\n  region: eu-west-1\n  credentials: chain\n";
    assert_eq!(
        Folder::new().problems(text),
        [
            "sites.yaml:4: sites[0].region: expected no region, or an origin that is s3://BUCKET[/PREFIX]",
            "sites.yaml:5: sites[0].credentials: expected no credentials, or an origin that is s3://BUCKET[/PREFIX]",
        ]
    );
    let text = "sites:\n- name: a\n  origin: s3://site\n  endpoint: http://127.0.0.1\n  addressing: virtual_host\n";
    let problems = Folder::new().problems(text);
    assert!(
        problems.len() == 1
            && problems[0]
                .starts_with("sites.yaml:5: sites[0].addressing: \"virtual_host\": expected path"),
        "{problems:?}"
    );
}

#[test]
fn a_file_that_is_no_list_of_sites_is_refused() {
    let folder = Folder::new();
    for (text, expected) in [
        (
            "",
            "sites.yaml: null: expected a mapping with edge or sites",
        ),
        (
            "- a",
            "sites.yaml: a list: expected a mapping with edge or sites",
        ),
        (
            "sites: []",
            "sites.yaml:1: sites: a list: expected a list with at least one item",
        ),
        (
            "site: []\nsites: [{name: a, origin: s3://site}]",
            "sites.yaml:1: site: unknown field, expected edge or sites",
        ),
        ("sites:\n  a: [", "sites.yaml:2: expected YAML or JSON: "),
        (
            "sites:\n- {name: a,\n   name: b}",
            "sites.yaml:3: expected YAML or JSON: duplicate mapping key `name`",
        ),
    ] {
        let problems = folder.problems(text);
        assert!(
            problems.len() == 1 && problems[0].starts_with(expected),
            "{text}: {problems:?}"
        );
    }
    let surroundings = Surroundings {
        lookup: &variable,
        region: "us-east-1",
        endpoint: None,
        purge_token: None,
        behind_proxy: false,
        now: SystemTime::now(),
    };
    let missing = Sites::read("/no/such/file", surroundings).unwrap_err();
    assert!(
        missing[0]
            .to_string()
            .starts_with("/no/such/file: expected a file that can be read")
    );
}

#[test]
fn no_two_sites_have_one_name_or_take_the_same_requests() {
    let text = "\
sites:
- {name: a, origin: 's3://site', hosts: [a.test, b.test]}
- {name: a, origin: 's3://site', hosts: [B.test]}
- {name: c, origin: 's3://site', hosts: [b.test], path: /c}
- {name: d, origin: 's3://site', hosts: [b.test], path: /c}
- {name: e, origin: 's3://site'}
- {name: f, origin: 's3://site'}
";
    assert_eq!(
        Folder::new().problems(text),
        [
            "sites.yaml:3: sites[1].hosts[0]: \"b.test\": expected another host, or another path than that of sites[0], which takes all paths of this host",
            "sites.yaml:3: sites[1].name: \"a\": expected another name than that of sites[0]",
            "sites.yaml:5: sites[3].hosts[0]: \"b.test\": expected another host, or another path than that of sites[2], which takes /c of this host",
            "sites.yaml:7: sites[5]: expected hosts, or another path than that of sites[4], which takes all paths of all hosts that no site names",
        ]
    );
}

#[test]
fn credentials_and_tokens_are_named_and_never_shown() {
    let folder = Folder::new().with("keys", "[default]\naws_access_key_id = hush\n");
    for (line, expected) in [
        (
            "credentials: {access_key_id: KEY, secret_access_key: NONE}",
            "credentials.secret_access_key: \"NONE\": expected the name of an environment variable that is set",
        ),
        (
            "credentials: {access_key_id: KEY, secret_access_key: EMPTY}",
            "credentials.secret_access_key: \"EMPTY\": expected the name",
        ),
        (
            "credentials: {access_key_id: KEY, secret_access_key: wJalr/hush}",
            "credentials.secret_access_key: expected the name of an environment variable: upper-case",
        ),
        (
            "credentials: {access_key_id: KEY}",
            "credentials.secret_access_key: required, but missing",
        ),
        (
            "credentials: {access_key_id: KEY, file: keys}",
            "credentials.file: unknown field, expected access_key_id, secret_access_key or session_token\n",
        ),
        ("credentials: {file: none}", "credentials.file: \"/"),
        (
            "credentials: {file: keys, profile: b}",
            "credentials.file: \"keys\": expected a file with the profile b: there is no line [b]",
        ),
        (
            "credentials: {file: keys}",
            "credentials.file: \"keys\": expected a file whose profile default has aws_access_key_id and",
        ),
        ("credentials: hush", "credentials: expected chain"),
        (
            "purge_token: NONE",
            "purge_token: \"NONE\": expected the name of an environment variable that is set",
        ),
        (
            "purge_token: SHORT",
            "purge_token: the value of SHORT must be at least 16 visible ASCII characters",
        ),
        (
            "purge_token: correct-hush",
            "purge_token: expected the name of an environment variable: upper-case",
        ),
    ] {
        let problems = folder.problems(&format!(
            "sites:\n- {line}\n  name: a\n  origin: s3://site\n"
        ));
        let told = problems.join("\n");
        assert!(
            !told.contains("hush") && !told.contains("short-secret"),
            "{told}"
        );
        let expected = expected.trim_end().replace("\"/", "\"");
        let start = format!("sites.yaml:2: sites[0].{expected}");
        assert!(told.starts_with(&start), "{line}: {told}");
    }
}

#[test]
fn sections_that_all_sites_share_are_refused_in_the_policy_of_one() {
    let folder = Folder::new().with(
        "p.yaml",
        "cache: {}\norigin: {kind: bucket}\n\nhot: {max_bytes: 5}\n",
    );
    let text = "\
sites:
- name: a
  origin: s3://site
  policy: p.yaml
- name: b
  hosts: [b.test]
  origin: s3://site
  policy:
    coalesce: {lease: 5s}
";
    assert_eq!(
        folder.problems(text),
        [
            "p.yaml:2: origin: not a section of a site's policy: remove it, because the site's own field `origin` sets it",
            "p.yaml:4: hot: all sites share this: move it to `edge.hot` of the file of sites",
            "sites.yaml:9: sites[1].policy.coalesce.lease: all sites share this: move it to `edge.coalesce.lease` of the file of sites",
        ]
    );
    for (edge, expected) in [
        (
            "cache: {}",
            "edge.cache: no part of the edge's, expected store, hot, ",
        ),
        (
            "coalesce: {max_wait: 1s}",
            "edge.coalesce.max_wait: belongs to the policy of a site",
        ),
    ] {
        let text = format!("edge:\n  {edge}\nsites:\n- {{name: a, origin: 's3://site'}}\n");
        let problems = folder.problems(&text);
        let expected = format!("sites.yaml:2: {expected}");
        assert!(
            problems.len() == 1 && problems[0].starts_with(&expected),
            "{problems:?}"
        );
    }
    let text = "edge:\n  limits: {waiters_per_key: 0}\nsites:\n- {name: a, origin: 's3://site'}\n";
    let expected =
        "sites.yaml:2: edge.limits.waiters_per_key: 0: expected a whole number from 1 to 1000000";
    assert_eq!(folder.problems(text), [expected]);
}

#[test]
fn an_error_in_a_policys_file_has_the_line_of_that_file_and_is_told_once() {
    let folder = Folder::new().with("p.yaml", "cache:\n  ttl:\n    200: soon\n");
    let text = "sites:\n- {name: a, origin: 's3://site', policy: p.yaml}\n- {name: b, hosts: [b.test], origin: 's3://b-b', policy: p.yaml}\n";
    let problems = folder.problems(text);
    assert!(
        problems.len() == 1
            && problems[0]
                .starts_with("p.yaml:3: cache.ttl.200: \"soon\": expected origin, or a duration"),
        "{problems:?}"
    );
}

#[test]
fn a_certificate_fits_its_key_and_covers_the_hosts_of_its_site() {
    let folder = Folder::new()
        .with_certificate("a", &["a.test", "*.b.test"], 90)
        .with_certificate("old", &["a.test"], -2)
        .with("text", "no certificate");
    for (hosts, certificate, key, expected) in [
        ("a.test, x.b.test, '*.b.test'", "a.pem", "a.key", None),
        (
            "a.test, b.test",
            "a.pem",
            "a.key",
            Some(
                "certificate: \"a.pem\": expected a certificate for b.test too: it is for a.test, *.b.test",
            ),
        ),
        (
            "a.test",
            "a.pem",
            "old.key",
            Some("key: \"old.key\": expected the key of the certificate in a.pem: it is another's"),
        ),
        ("a.test", "old.pem", "old.key", None),
        (
            "a.test",
            "text",
            "a.key",
            Some(
                "certificate: \"text\": expected a PEM file with the certificate chain: it has no certificate",
            ),
        ),
        (
            "a.test",
            "a.pem",
            "text",
            Some("key: \"text\": expected a PEM file with the private key"),
        ),
        (
            "a.test",
            "a.pem",
            "none",
            Some("key: \"none\": expected a PEM file with the private key"),
        ),
    ] {
        let text = format!(
            "sites:\n- name: a\n  origin: s3://site\n  hosts: [{hosts}]\n  tls:\n    {{certificate: {certificate}, key: {key}}}\n"
        );
        match (folder.read(&text), expected) {
            (Ok(_), None) => {}
            (Err(problems), Some(expected)) => {
                let start = format!("sites.yaml:6: sites[0].tls.{expected}");
                assert!(
                    problems.len() == 1 && problems[0].starts_with(&start),
                    "{problems:?}, not {start}"
                );
            }
            (read, _) => panic!("{hosts}: {read:?}"),
        }
    }
}

#[test]
fn a_host_has_one_certificate() {
    let folder = Folder::new()
        .with_certificate("a", &["a.test"], 90)
        .with_certificate("b", &["a.test"], 90);
    let text = |second: &str| {
        format!(
            "sites:\n- {{name: a, origin: 's3://site', hosts: [a.test], tls: {{certificate: a.pem, key: a.key}}}}\n\
             - {{name: b, origin: 's3://site', hosts: [a.test], path: /b{second}}}\n"
        )
    };
    folder.read(&text("")).unwrap();
    let sites = folder.read(&text(", hsts: 1h")).unwrap();
    assert_eq!(sites.sites[0].certificate, sites.sites[1].certificate);
    let other_host = text(", hsts: 1h").replace("[a.test], path", "[a.test, c.test], path");
    let problems = folder.problems(&other_host);
    assert!(
        problems.len() == 1 && problems[0].starts_with("sites.yaml:3: sites[1].tls.certificate: \"a.pem\": expected a certificate for c.test too"),
        "{problems:?}"
    );
    folder
        .read(&text(", tls: {certificate: a.pem, key: a.key}"))
        .unwrap();
    let problems = folder.problems(&text(", tls: {certificate: b.pem, key: b.key}"));
    assert_eq!(
        problems,
        [
            "sites.yaml:3: sites[1].tls: expected the files of sites[0].tls, or nothing: a.test can have one certificate"
        ]
    );
}

#[test]
fn what_speaks_of_https_needs_a_certificate_or_a_proxy_that_has_one() {
    let folder = Folder::new();
    let text = "sites:\n- name: a\n  origin: s3://site\n  hosts: [a.test]\n  redirect_to_https: true\n  hsts: 365d\n";
    let problems = folder.problems(text);
    assert_eq!(problems.len(), 2);
    assert!(problems[0].starts_with("sites.yaml:5: sites[0].redirect_to_https: expected tls here or in another site for a.test, or SLUICE_TRUSTED_HOPS"));
    assert!(problems[1].starts_with("sites.yaml:6: sites[0].hsts: expected tls"));
    let sites = folder.read_behind(text, true).unwrap();
    assert_eq!(sites.sites[0].hsts.as_deref(), Some("max-age=31536000"));
    let text =
        "sites:\n- name: a\n  origin: s3://site\n  hsts: {max_age: 1d,\n    preload: true}\n";
    let problems = folder.read_behind(text, true).unwrap_err();
    assert_eq!(
        problems,
        [
            "sites.yaml:5: sites[0].hsts.preload: true: expected include_subdomains to be true and max_age to be at least 365d"
        ]
    );
}

#[test]
fn all_problems_are_told_at_once_in_the_order_of_the_lines() {
    let text = "\
sites:
- name: A
  hosts: ['a:1']
  origin: ftp://a
- name: b
  path: b
  origin: s3://site
  share: 0
  policy: {hot: {}}
";
    let problems = Folder::new().problems(text);
    let starts = [
        "2: sites[0].name",
        "3: sites[0].hosts[0]",
        "4: sites[0].origin",
        "6: sites[1].path",
        "8: sites[1].share",
        "9: sites[1].policy.hot",
    ];
    assert_eq!(problems.len(), starts.len(), "{problems:#?}");
    for (problem, start) in problems.iter().zip(starts) {
        assert!(
            problem.starts_with(&format!("sites.yaml:{start}: ")),
            "{problem}"
        );
    }
}

#[test]
fn a_token_is_for_one_site() {
    let text = "sites:\n- {name: a, origin: 's3://site', purge_token: TOKEN}\n- {name: b, origin: 's3://site', path: /b, purge_token: TOKEN}\n";
    let expected =
        "sites.yaml:3: sites[1].purge_token: expected another token than that of sites[0]";
    assert_eq!(Folder::new().problems(text), [expected]);
}

#[test]
fn the_host_of_a_request_makes_no_second_site_of_a_bucket() {
    let text = "sites:\n- name: a\n  origin: s3://site\n  policy:\n    key: {host: true}\n";
    let problems = Folder::new().problems(text);
    assert!(
        problems.len() == 1
            && problems[0]
                .starts_with("sites.yaml:5: sites[0].policy.key.host: true: expected false"),
        "{problems:?}"
    );
}

#[test]
fn a_second_origin_has_its_own_place_and_the_credentials_of_the_site() {
    let folder = Folder::new();
    let text = "\
sites:
- name: a
  origin: s3://site
  credentials: {access_key_id: KEY, secret_access_key: SECRET}
  failover: {origin: 's3://copy/x', region: us-east-1}
- name: b
  hosts: [b.test]
  origin: http://b.test
  failover: {origin: 'https://c.test', ttl: 5s, connect_timeout: 200ms, after_silence: 2s, pass_client_credentials: true}
- name: c
  hosts: [c.test]
  origin: s3://site
  failover: {origin: 'http://d.test', on_missing: true, until: 2027-01-31}
";
    let sites = folder.read(text).unwrap().sites;
    let second = |site: usize| sites[site].failover.as_ref().unwrap();
    let Origin::Bucket(bucket) = &second(0).origin else {
        panic!("{:?}", second(0))
    };
    assert_eq!(
        (bucket.region.as_str(), bucket.prefix.as_str()),
        ("us-east-1", "x")
    );
    assert_eq!(second(0).credentials, sites[0].credentials);
    assert_eq!(second(0).times, FailoverTimes::default());
    assert!(second(0).shares_validators(&sites[0].origin));
    let times = FailoverTimes {
        ttl: Duration::from_secs(5),
        connect_timeout: Duration::from_millis(200),
        after_silence: Duration::from_secs(2),
    };
    assert_eq!(
        (second(1).times, second(1).passes_client_credentials),
        (times, true)
    );
    assert!(!second(1).shares_validators(&sites[1].origin));
    let on_missing = second(2).on_missing.unwrap();
    assert_eq!(on_missing.until, Some(day("2027-01-31").unwrap()));
    assert!(!second(2).shares_validators(&sites[2].origin));
}

#[test]
fn a_wrong_second_origin_is_refused_with_its_field() {
    let folder = Folder::new();
    for (fields, expected) in [
        ("{}", "failover.origin: required, but missing"),
        (
            "{origin: 'ftp://a'}",
            "failover.origin: \"ftp://a\": expected s3://BUCKET",
        ),
        (
            "{origin: 's3://copy', ttl: 1.5s}",
            "failover.ttl: \"1.5s\": expected a duration of whole seconds",
        ),
        (
            "{origin: 's3://copy', ttl: 0s}",
            "failover.ttl: \"0s\": expected",
        ),
        (
            "{origin: 's3://copy', after_silence: 2m}",
            "failover.after_silence: \"2m\": expected a duration from 50ms to 60s",
        ),
        (
            "{origin: 's3://copy', connect_timeout: 1ms}",
            "failover.connect_timeout: \"1ms\": expected",
        ),
        (
            "{origin: 'http://c.test', region: eu-west-1}",
            "failover.region: expected no region",
        ),
        (
            "{origin: 's3://copy', pass_client_credentials: 1}",
            "failover.pass_client_credentials: 1: expected true or false",
        ),
        (
            "{origin: 's3://copy', credentials: {access_key_id: NONE, secret_access_key: SECRET}}",
            "failover.credentials.access_key_id: \"NONE\": expected the name",
        ),
        (
            "{origin: 's3://copy', until: 2027-01-31}",
            "failover.until: \"2027-01-31\": expected no day, or on_missing to be true",
        ),
        (
            "{origin: 's3://copy', on_missing: true, until: 2027-02-30}",
            "failover.until: \"2027-02-30\": expected a day",
        ),
        (
            "{origin: 's3://copy', tls: 1}",
            "failover.tls: unknown field",
        ),
    ] {
        folder.refuses(&format!("failover: {fields}"), expected);
    }
    let text = "sites:\n- name: a\n  origin: http://a.test\n  failover: {origin: 's3://copy', on_missing: true}\n";
    assert_eq!(
        folder.problems(text),
        [
            "sites.yaml:4: sites[0].failover.on_missing: true: expected false, because the first origin is not a bucket",
            "sites.yaml:4: sites[0].failover.origin: \"s3://copy\": expected http://HOST[:PORT] or https://HOST[:PORT], because the first origin is not a bucket",
        ]
    );
}
