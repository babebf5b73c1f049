// SPDX-License-Identifier: Apache-2.0
//! The recipes of docs/access.md do what the page says.

use std::process::Command;

use sluice_tests::edge::Edge;
use tempfile::TempDir;

use super::world::{INSIDE, KEY, OUTSIDE, Rules, assert_refused, origin, send, sign, target};

const PAGE: &str = include_str!("../../../../docs/access.md");

/// The block of the page that begins with this line.
fn block(first: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("{first}\n")).unwrap();
    rest.split("```").next().unwrap()
}

#[tokio::test]
async fn an_intranet_is_open_to_its_addresses() {
    let (origin, rules) = (origin().await, Rules::new(block("# intranet.yaml")));
    let edge = rules.edge(&origin).start().await;
    for (address, path, status) in [
        (INSIDE, "/a", 200),
        ("fd00::7", "/a", 200),
        (OUTSIDE, "/robots.txt", 200),
        (OUTSIDE, "/a", 403),
        ("2001:db8::1", "/a", 403),
    ] {
        let response = send(&edge, address, "GET", path).await;
        assert_eq!(response.status, status, "{address} {path}: {response}");
    }
}

/// The output of a program of the page, which signs this URL; `None` if this machine has no such tool.
fn run(program: &mut Command, url: &str, name: &str) -> Option<String> {
    let output = program.args([url, name, KEY]).output().ok()?;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    Some(
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned(),
    )
}

/// The links that the programs of the page make.
fn links(url: &str, name: &str) -> Vec<String> {
    let folder = TempDir::new().unwrap();
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let python = put("sign.py", block("```python"));
    let node = put("sign.mjs", block("```javascript"));
    let go = put("sign.go", block("```go"));
    let of_node =
        std::env::var_os("SLUICE_NODE").map(|folder| std::path::Path::new(&folder).join("node"));
    let programs = [
        Some(Command::new("python3")).map(|mut it| {
            it.arg(python);
            it
        }),
        of_node.map(|tool| {
            let mut it = Command::new(tool);
            it.arg(node);
            it
        }),
        Some(Command::new("go")).map(|mut it| {
            it.arg("run").arg(go);
            it
        }),
    ];
    let programs = programs.into_iter().flatten();
    programs
        .filter_map(|mut program| run(&mut program, url, name))
        .collect()
}

async fn status(edge: &Edge, link: &str) -> u16 {
    edge.get(&target(link)).await.status
}

#[tokio::test]
async fn the_programs_of_the_page_make_links_that_the_edge_accepts() {
    let (origin, rules) = (origin().await, Rules::new(block("# links.yaml")));
    let edge = rules.edge(&origin).start().await;
    for url in [
        "http://edge.test/report.pdf",
        "http://edge.test/a%20b?v=1&w=2",
    ] {
        let links = links(url, "2026a");
        assert!(!links.is_empty());
        let own = sign(&edge, &[url, "--expires", "1h"]);
        for link in links.iter().chain([&own]) {
            assert_eq!(status(&edge, link).await, 200, "{link}");
            assert_eq!(
                status(&edge, &link.replace("sluice-expires=1", "sluice-expires=2")).await,
                403
            );
        }
        assert_refused(&edge.get(&target(url)).await, url);
    }
}

#[tokio::test]
async fn a_cookie_opens_all_files_of_a_film() {
    let (origin, rules) = (origin().await, Rules::new(block("# films.yaml")));
    let edge = rules.edge(&origin).start().await;
    let line = PAGE
        .lines()
        .find(|line| line.starts_with("sluice sign") && line.contains("--cookie"));
    let arguments: Vec<_> = line.unwrap().split(' ').skip(2).collect();
    let set_cookie = sign(&edge, &arguments);
    assert!(set_cookie.contains("; Secure"), "{set_cookie}");
    let cookie = set_cookie.split(';').next().unwrap();
    let headers = [("host", "www.example.com"), ("cookie", cookie)];
    for (path, status) in [
        ("/films/7/index.m3u8", 200),
        ("/films/7/1.ts?n=1", 200),
        ("/films/70/1.ts", 403),
        ("/films/7", 403),
    ] {
        assert_eq!(
            edge.send("GET", path, &headers).await.status,
            status,
            "{path}"
        );
    }
}
