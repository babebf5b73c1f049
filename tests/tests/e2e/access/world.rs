// SPDX-License-Identifier: Apache-2.0
//! An edge with access rules, and clients inside and outside of them.

use sluice_tests::client::Response;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::origin::{Origin, Reply};
use tempfile::TempDir;

/// The key of signed URLs.
pub const KEY: &str = "0123456789abcdef0123456789abcdef";
/// An address that the rules allow.
pub const INSIDE: &str = "10.1.2.3";
/// An address that the rules do not allow.
pub const OUTSIDE: &str = "198.51.100.7";

/// Rules in a file, which must outlive their edge.
pub struct Rules(pub TempDir);

impl Rules {
    pub fn new(text: &str) -> Self {
        let rules = Self(TempDir::with_prefix("sluice-access-").unwrap());
        rules.put(text);
        rules
    }

    pub fn path(&self) -> String {
        self.0.path().join("access.yaml").display().to_string()
    }

    pub fn put(&self, text: &str) {
        let part = self.0.path().join("access.part");
        std::fs::write(&part, text).unwrap();
        std::fs::rename(part, self.path()).unwrap();
    }

    /// An edge with these rules and the key, behind one trusted proxy.
    pub fn edge(&self, origin: &Origin) -> Builder {
        Edge::http(origin)
            .env("SLUICE_ACCESS", self.path())
            .env("SIGNING_KEY", KEY)
            .env("SLUICE_TRUSTED_HOPS", "1")
    }
}

/// An origin with objects on all paths.
pub async fn origin() -> Origin {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1_000).max_age(600).ranges());
    origin
}

/// Sends a request of a client with this address.
pub async fn send(edge: &Edge, address: &str, method: &str, target: &str) -> Response {
    edge.send(method, target, &[("x-forwarded-for", address)])
        .await
}

/// Checks a refusal.
pub fn assert_refused(response: &Response, what: &str) {
    assert_eq!(response.status, 403, "{what}: {response}");
    assert_eq!(
        response.header("cache-control"),
        "no-store",
        "{what}: {response}"
    );
    let text = String::from_utf8_lossy(&response.body);
    assert!(
        text.is_empty() || text == "Access denied.\n",
        "{what}: {text}"
    );
}

/// The output of `sluice sign` with these arguments and the settings of the edge.
pub fn sign(edge: &Edge, arguments: &[&str]) -> String {
    let output = edge.entry_point("sign").args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

/// The path and the query of a URL.
pub fn target(url: &str) -> String {
    let (_, rest) = url.split_once("://").unwrap();
    rest[rest.find('/').unwrap()..].to_owned()
}
