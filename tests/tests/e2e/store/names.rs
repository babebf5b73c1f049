// SPDX-License-Identifier: Apache-2.0
//! The names of the cache's files. A client cannot foresee a name without the secret, which is never shown. Where two
//! keys have the same name nevertheless, a file hides the other key's object for a short time only.

use sluice::settings::Runtime;
use sluice_tests::edge::{ADMIN_PAGES, Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::machine::tool::runtime;
use sluice_tests::origin::{Origin, Reply};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Log line of a mismatch.
const MISMATCH: &str = "the store gave the response of another key";

async fn origin() -> Origin {
    let origin = Origin::start().ready().await;
    let reply = Reply::ok(20_000).max_age(3_600);
    origin.on("*", reply.header("content-type", "text/plain"));
    origin
}

/// An edge whose hits are all served by the store.
fn edge(origin: &Origin) -> Builder {
    Edge::http(origin).env("SLUICE_HOT_BYTES", "0").workers(1)
}

fn root(edge: &Edge) -> PathBuf {
    edge.folder().join("cache")
}

fn names(edge: &Edge) -> BTreeSet<OsString> {
    let files = fs::read_dir(root(edge).join("entries")).unwrap();
    files.map(|file| file.unwrap().file_name()).collect()
}

/// Stores an object, and returns its file.
async fn store(edge: &Edge, path: &str) -> PathBuf {
    let before = names(edge);
    eventually("a hit", async || edge.get(path).await.is_hit()).await;
    let after = names(edge);
    let mut new = after.difference(&before);
    let (Some(name), None) = (new.next(), new.next()) else {
        panic!("{path}: not one file: {after:?}");
    };
    root(edge).join("entries").join(name)
}

fn secret(edge: &Edge) -> String {
    let text = fs::read_to_string(root(edge).join("secret")).unwrap();
    text.trim_end().to_owned()
}

/// Returns the hash in the path under which the store has written a file.
fn hash_in(file: &Path, path: &str) -> String {
    let bytes = fs::read(file).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let start = text.find(&format!("{path}#")).expect("the store's path") + path.len() + 1;
    let hash = &text[start..start + 32];
    assert!(
        hash.bytes().all(|digit| digit.is_ascii_hexdigit()),
        "{hash}"
    );
    hash.to_owned()
}

#[tokio::test]
async fn a_file_of_another_key_hides_nothing_for_long() {
    let origin = origin().await;
    let edge = edge(&origin).allow_log(MISMATCH).start().await;
    let (victim, other) = (store(&edge, "/victim").await, store(&edge, "/other").await);
    fs::copy(&other, &victim).unwrap();
    let asked = origin.count("/victim");
    let finder = edge.get("/victim").await;
    assert_eq!(finder.status, 200, "{finder}");
    let _ = finder.stamp("/victim");
    assert!(!finder.is_hit(), "{finder}");
    assert_eq!(finder.header("content-type"), "text/plain");
    assert_eq!(edge.counter("sluice_key_mismatches").await, 1);
    for n in 1..4 {
        let later = edge.get("/victim").await;
        let _ = later.stamp("/victim");
        assert_eq!(origin.count("/victim"), asked + 1 + n, "{later}");
    }
    let range = edge
        .send("GET", "/victim", &[("range", "bytes=5-14")])
        .await;
    assert!(matches!(range.status, 200 | 206), "{range}");
    assert_eq!(edge.send("HEAD", "/victim", &[]).await.status, 200);
    assert_eq!(edge.counter("sluice_key_mismatches").await, 1);
    let unharmed = edge.get("/other").await;
    let _ = unharmed.stamp("/other");
    assert!(unharmed.is_hit(), "{unharmed}");
    edge.wait_for_log(MISMATCH).await;
}

#[tokio::test]
async fn what_a_call_cannot_bring_is_to_be_asked_for_again_in_a_second() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(3_000_000).max_age(3_600));
    let edge = edge(&origin).allow_log(MISMATCH).start().await;
    let (victim, other) = (store(&edge, "/victim").await, store(&edge, "/other").await);
    fs::copy(&other, &victim).unwrap();
    let finder = edge.get("/victim").await;
    assert_eq!(finder.status, 503, "{finder}");
    assert_eq!(finder.header("retry-after"), "1");
    let _ = edge.get("/victim").await.stamp("/victim");
    edge.wait_for_log(MISMATCH).await;
}

#[tokio::test]
async fn names_depend_on_a_secret_that_a_restart_keeps() {
    let origin = origin().await;
    let [mut one, other] = [edge(&origin).start().await, edge(&origin).start().await];
    let (first, second) = (store(&one, "/a").await, store(&other, "/a").await);
    assert_ne!(first.file_name(), second.file_name(), "of two secrets");
    let secret_file = root(&one).join("secret");
    assert_eq!(fs::metadata(&secret_file).unwrap().mode() & 0o777, 0o600);
    let before = secret(&one);
    assert_ne!(before, secret(&other));
    let asked = origin.count("/a");
    one.restart().await;
    assert!(one.get("/a").await.is_hit());
    assert_eq!((origin.count("/a"), secret(&one)), (asked, before.clone()));
    let mut known = BTreeSet::from([before, secret(&other)]);
    let mut files = BTreeSet::from([first.file_name().unwrap().to_owned()]);
    for (starts, torn) in [(1, None), (2, Some("0123456789abcdef"))] {
        one.end_by(one.pid(), libc::SIGTERM).await;
        match torn {
            Some(text) => fs::write(&secret_file, text).unwrap(),
            None => fs::remove_file(&secret_file).unwrap(),
        }
        one.start_again().await;
        let said = one.log_lines("secret is missing, damaged");
        assert_eq!(said.len(), starts, "{said:?}");
        let asked = origin.count("/a");
        let file = store(&one, "/a").await;
        assert_eq!(origin.count("/a"), asked + 1, "a cold start: {torn:?}");
        assert!(
            files.insert(file.file_name().unwrap().to_owned()),
            "{files:?}"
        );
        assert!(known.insert(secret(&one)));
    }
}

#[tokio::test]
async fn neither_the_secret_nor_a_hash_shows_anywhere() {
    let origin = origin().await;
    let mut texts = Vec::new();
    let mut hidden = Vec::new();
    for log in ["json", "text"] {
        let edge = edge(&origin).env("SLUICE_ACCESS_LOG", log).start().await;
        let file = store(&edge, "/a?b=1").await;
        hidden.extend([secret(&edge), hash_in(&file, "/a?b=1")]);
        for (method, target, headers) in [
            ("GET", "/a?b=1", &[("range", "bytes=0-9")][..]),
            ("GET", "/a?b=1", &[("cache-control", "no-cache")]),
            ("GET", "/a?b=1", &[("authorization", "Basic YTpi")]),
            ("GET", "/%61?b=1", &[]),
            ("HEAD", "/a?b=1", &[]),
            ("HEAD", "/cold", &[]),
            ("GET", "/ranged", &[("range", "bytes=0-9")]),
            ("POST", "/a?b=1", &[]),
        ] {
            texts.push(edge.send(method, target, headers).await.to_string());
        }
        for page in ADMIN_PAGES {
            let answer = edge.admin_get(page).await;
            texts.push(String::from_utf8_lossy(&answer.body).into_owned());
        }
        eventually("the access log", async || edge.log().contains("/ranged")).await;
        texts.push(edge.log());
        let files = format!("state/envoy-{}", edge.address().port());
        for file in fs::read_dir(edge.folder().join(files)).unwrap() {
            texts.push(fs::read_to_string(file.unwrap().path()).unwrap());
        }
    }
    // The configuration of a VM names the variable that the VM may read.
    let named = texts
        .iter()
        .any(|text| text.contains("SLUICE_CACHE_SECRET"));
    assert_eq!(named, runtime() == Runtime::Wasm);
    texts.extend(
        origin
            .requests()
            .all()
            .iter()
            .map(|request| format!("{request:?}")),
    );
    for request in origin.requests().all() {
        assert!(!request.target.contains('#'), "{request:?}");
    }
    for text in &texts {
        for hidden in &hidden {
            assert!(!text.contains(hidden.as_str()), "{hidden} in {text}");
        }
    }
}
