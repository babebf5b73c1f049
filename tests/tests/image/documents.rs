// SPDX-License-Identifier: Apache-2.0
//! Documents that a registry has beside each image: its bill of materials, and its provenance.

use serde_json::Value;
use sluice_tests::image::architecture::Architecture;
use sluice_tests::image::container::Container;
use sluice_tests::image::registry::Registry;
use sluice_tests::machine::tool::repository;
use std::collections::BTreeSet;
use std::process::Command;

const BILL: &str = "application/vnd.cyclonedx+json";
const PROVENANCE: &str = "application/vnd.in-toto+json";

/// The documents on an image, by their type, as a registry without the referrers API lists them:
/// <https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#referrers-tag-schema>.
fn document(registry: &Registry, image: &str, digest: &str, media_type: &str) -> Value {
    let list = format!("{image}:{}", digest.replace(':', "-"));
    let list: Value = serde_json::from_slice(&registry.ask(&["manifest"], &list)).unwrap();
    let documents = list["manifests"].as_array().unwrap();
    assert_eq!(documents.len(), 2, "{list}");
    let document = documents
        .iter()
        .find(|one| one["artifactType"] == media_type);
    let manifest = format!("{image}@{}", document.unwrap()["digest"].as_str().unwrap());
    let manifest: Value = serde_json::from_slice(&registry.ask(&["manifest"], &manifest)).unwrap();
    assert_eq!(manifest["subject"]["digest"], digest);
    let layer = format!(
        "{image}@{}",
        manifest["layers"][0]["digest"].as_str().unwrap()
    );
    serde_json::from_slice(&registry.ask(&["blob"], &layer)).unwrap()
}

/// Pushes everything and returns each image with the digest of its manifest. The edge's image for this machine is the
/// first.
fn pushed(registry: &Registry) -> Vec<(&'static str, String)> {
    let printed = registry.push_all("1.2.3");
    let [edge, filter] = &printed.lines().collect::<Vec<_>>()[..] else {
        panic!("{printed}");
    };
    let digest = |line: &str| line.split_once('@').unwrap().1.to_owned();
    let index = registry.ask(&["manifest"], &format!("edge@{}", digest(edge)));
    let index: Value = serde_json::from_slice(&index).unwrap();
    let manifests = index["manifests"].as_array().unwrap();
    let of = |architecture: Architecture| {
        let mut manifests = manifests.iter();
        let found = manifests.find(|one| one["platform"]["architecture"] == architecture.name());
        let digest = found.unwrap()["digest"].as_str().unwrap();
        ("edge", digest.to_owned())
    };
    let mut images: Vec<_> = Architecture::ALL.map(of).into();
    images.sort_by_key(|image| *image != of(Architecture::this()));
    images.push(("filter", digest(filter)));
    images
}

#[tokio::test]
async fn each_image_and_the_index_of_the_architectures_say_what_they_are() {
    let registry = Registry::start().await;
    let index = format!("edge@{}", registry.push("edge"));
    let images = pushed(&registry).into_iter();
    let images = images.map(|(image, digest)| format!("{image}@{digest}"));
    for image in images.chain([index]) {
        let manifest = registry.ask(&["manifest"], &image);
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        let annotation = |name: &str| {
            let text = &manifest["annotations"][format!("org.opencontainers.image.{name}")];
            text.as_str().map(str::to_owned)
        };
        let (title, description) = if image.starts_with("edge") {
            ("sluice", "A caching edge for S3 buckets and HTTP servers")
        } else {
            (
                "sluice-filter",
                "The filter of Sluice for the proxies of Istio",
            )
        };
        for (name, expected) in [
            ("title", title),
            ("description", description),
            ("version", env!("CARGO_PKG_VERSION")),
            ("licenses", "Apache-2.0"),
            (
                "created",
                &git(&[
                    "log",
                    "-1",
                    "--format=%cd",
                    "--date=format-local:%Y-%m-%dT%H:%M:%SZ",
                ]),
            ),
        ] {
            assert_eq!(
                annotation(name).as_deref(),
                Some(expected),
                "{image}: {name}"
            );
        }
        let revision = annotation("revision").unwrap();
        assert!(
            revision.starts_with(&git(&["rev-parse", "HEAD"])),
            "{image}: {revision}"
        );
        let source = std::env::var("SOURCE").ok();
        assert_eq!(annotation("source"), source, "{image}");
    }
}

/// The output of Git in this repository, with times in UTC.
fn git(arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(arguments)
        .env("TZ", "UTC")
        .current_dir(repository());
    let output = git.output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn names(bill: &Value) -> BTreeSet<&str> {
    let components = bill["components"].as_array().unwrap().iter();
    components
        .map(|one| one["purl"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_push_brings_the_bill_and_the_provenance_of_each_image() {
    let registry = Registry::start().await;
    let commit = git(&["rev-parse", "HEAD"]);
    for (image, digest) in pushed(&registry) {
        let bill = document(&registry, image, &digest, BILL);
        assert_eq!(bill["bomFormat"], "CycloneDX");
        let own = |name| names(&bill).iter().any(|purl| purl.starts_with(name));
        assert!(own("pkg:cargo/sluice-core@"), "{image}: {bill}");
        let statement = document(&registry, image, &digest, PROVENANCE);
        let subject = format!(
            "sha256:{}",
            statement["subject"][0]["digest"]["sha256"]
                .as_str()
                .unwrap()
        );
        assert_eq!(subject, digest);
        let sources = &statement["predicate"]["buildDefinition"]["resolvedDependencies"];
        assert_eq!(sources[0]["digest"]["gitCommit"], commit, "{statement}");
    }
}

#[tokio::test]
async fn the_bill_of_the_edge_names_what_is_in_its_file_system() {
    let registry = Registry::start().await;
    let (image, digest) = pushed(&registry).swap_remove(0);
    let bill = document(&registry, image, &digest, BILL);
    let names = names(&bill);
    let container = Container::edge().await;
    for package in std::fs::read_dir(container.root().join("var/lib/dpkg/status.d")).unwrap() {
        let fields = std::fs::read_to_string(package.unwrap().path()).unwrap();
        let field = |name: &str| {
            let line = fields.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().replace('+', "%2B")
        };
        let purl = format!("pkg:deb/debian/{}@{}", field("Package:"), field("Version:"));
        assert!(
            names.iter().any(|name| name.starts_with(&purl)),
            "{purl}: {names:?}"
        );
    }
    let envoy = Command::new(container.root().join("usr/local/bin/envoy"))
        .arg("--version")
        .output();
    let version = String::from_utf8(envoy.unwrap().stdout).unwrap();
    let version = version.rsplit('/').nth(3).unwrap().to_owned();
    assert!(
        names.contains(format!("pkg:github/envoyproxy/envoy@v{version}").as_str()),
        "{names:?}"
    );
}
