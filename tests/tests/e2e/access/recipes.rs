// SPDX-License-Identifier: Apache-2.0
//! The recipes of docs/access.md do what the page says. Their text is that of the page, with other servers in the place
//! of its servers.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use sluice_tests::client::Response;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::token_issuer::{TokenIssuer, key_set};
use tempfile::TempDir;

use super::world::{INSIDE, KEY, OUTSIDE, assert_refused, origin, sign, target};

const PAGE: &str = include_str!("../../../../docs/access.md");
/// The recipes with access rules alone: the first line of each, and the hosts and the path of the site that it protects
/// here.
const RULES: [(&str, &str); 5] = [
    ("intranet", "hosts: [intranet.test]"),
    ("preview", "hosts: [preview.test]"),
    ("tokens", "hosts: [tokens.test]"),
    ("links", "hosts: [www.example.com]"),
    ("films", "hosts: [www.example.com]\n  path: /films"),
];
/// The server that oauth2-proxy's stand-in has in place of.
const PROXY: &str = "http://oauth2-proxy:4180";

/// The block of the page that begins with this line.
fn block(first: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("{first}\n")).unwrap();
    rest.split("```").next().unwrap()
}

/// The sites of one edge: the recipe with sites, and a site for each of the others.
fn sites(origin: &Origin, proxy: &Origin) -> String {
    let url = origin.url();
    let mut text = block("# sites.yaml")
        .replace("s3://my-docs", &url)
        .replace(PROXY, &proxy.url());
    for (name, place) in RULES {
        let rules = block(&format!("# {name}.yaml"));
        let rules: String = rules.lines().map(|line| format!("    {line}\n")).collect();
        text += &format!("- name: {name}\n  {place}\n  origin: {url}\n  access:\n{rules}");
    }
    text
}

/// A stand-in for oauth2-proxy, whose client has no session.
async fn proxy() -> Origin {
    let proxy = Origin::start().ready().await;
    let challenge = Reply::status(401).empty();
    proxy.on("/oauth2/auth", challenge);
    let login = "https://id.example.com/authorize?client_id=docs";
    let start = Reply::status(302).empty().header("location", login);
    proxy.on("/oauth2/start*", start);
    let session = "_oauth2_proxy=session; Path=/; HttpOnly";
    let callback = Reply::status(302).empty().header("location", "/");
    proxy.on("/oauth2/callback*", callback.header("set-cookie", session));
    proxy
}

async fn get(edge: &Edge, host: &str, path: &str, more: &[(&str, &str)]) -> Response {
    let fields = [&[("host", host)], more].concat();
    edge.send("GET", path, &fields).await
}

/// Runs the command of the page that adds a user, in this folder.
fn add_user(folder: &Path) {
    let script = PAGE
        .lines()
        .find(|line| line.starts_with("printf 'reader:{SHA}"));
    let mut shell = Command::new("sh");
    let shell = shell.arg("-c").arg(script.unwrap()).current_dir(folder);
    assert!(shell.status().unwrap().success());
}

#[tokio::test]
async fn the_recipes_of_the_page_do_what_it_says() {
    let (origin, proxy) = (origin().await, proxy().await);
    let folder = TempDir::with_prefix("sluice-access-").unwrap();
    let issuer = TokenIssuer::edwards("a");
    std::fs::write(folder.path().join("jwks.json"), key_set(&[&issuer])).unwrap();
    add_user(folder.path());
    let file = folder.path().join("sites.yaml");
    std::fs::write(&file, sites(&origin, &proxy)).unwrap();
    let edge = Builder::new()
        .env("SLUICE_SITES", file.display().to_string())
        .env("SIGNING_KEY", KEY)
        .env("SLUICE_TRUSTED_HOPS", "1")
        .start()
        .await;
    check_intranet(&edge).await;
    check_preview(&edge).await;
    check_tokens(&edge, &issuer).await;
    check_proxy(&edge, &origin, &proxy).await;
    check_links(&edge).await;
    check_films(&edge).await;
}

async fn check_intranet(edge: &Edge) {
    for (address, path, status) in [
        (INSIDE, "/a", 200),
        ("fd00::7", "/a", 200),
        (OUTSIDE, "/robots.txt", 200),
        (OUTSIDE, "/a", 403),
        ("2001:db8::1", "/a", 403),
    ] {
        let from = [("x-forwarded-for", address)];
        let response = get(edge, "intranet.test", path, &from).await;
        assert_eq!(response.status, status, "{address} {path}: {response}");
    }
}

async fn check_preview(edge: &Edge) {
    // reader:open sesame, and reader:open
    let (right, wrong) = ("Basic cmVhZGVyOm9wZW4gc2VzYW1l", "Basic cmVhZGVyOm9wZW4=");
    for (path, password, status) in [
        ("/a", right, 200),
        ("/a", wrong, 401),
        ("/robots.txt", wrong, 200),
    ] {
        let sent = [("authorization", password)];
        let response = get(edge, "preview.test", path, &sent).await;
        assert_eq!(response.status, status, "{path} {password}: {response}");
    }
    let asked = get(edge, "preview.test", "/a", &[]).await;
    let challenge = r#"Basic realm="Preview", charset="UTF-8""#;
    assert_eq!(asked.header("www-authenticate"), challenge, "{asked}");
}

async fn check_tokens(edge: &Edge, issuer: &TokenIssuer) {
    let token = issuer.token(&json!({ "iss": "https://id.example.com" }));
    let other = issuer.token(&json!({}));
    for (name, value, status) in [
        ("authorization", format!("Bearer {token}"), 200),
        ("cookie", format!("session={token}"), 200),
        ("authorization", format!("Bearer {other}"), 401),
        ("cookie", format!("other={token}"), 401),
    ] {
        let response = get(edge, "tokens.test", "/a", &[(name, &value)]).await;
        assert_eq!(response.status, status, "{name}: {response}");
    }
}

/// A browser that has no session, logs in, and has one.
async fn check_proxy(edge: &Edge, origin: &Origin, proxy: &Origin) {
    const HOST: &str = "docs.example.com";
    let refused = get(edge, HOST, "/guide", &[]).await;
    assert_eq!(refused.status, 401, "{refused}");
    assert_eq!(origin.count("/guide"), 0);
    // The pages for the login are unchecked, and no cache has them.
    for _ in 0..2 {
        let start = get(edge, HOST, "/oauth2/start?rd=%2Fguide", &[]).await;
        assert_eq!(start.status, 302, "{start}");
        let login = "https://id.example.com/authorize?client_id=docs";
        assert_eq!(start.header("location"), login);
        let callback = get(edge, HOST, "/oauth2/callback?code=1", &[]).await;
        let session = "_oauth2_proxy=session; Path=/; HttpOnly";
        assert_eq!(callback.header("set-cookie"), session, "{callback}");
    }
    assert_eq!(proxy.requests().of("/oauth2/callback?code=1").len(), 2);
    let asked = proxy.requests().of("/oauth2/auth");
    assert_eq!(asked.len(), 1);
    proxy.on("/oauth2/auth", Reply::status(202).empty());
    let sent = [("cookie", "_oauth2_proxy=session; theme=dark")];
    for _ in 0..2 {
        let admitted = get(edge, HOST, "/guide", &sent[..1]).await;
        assert_eq!(admitted.status, 200, "{admitted}");
    }
    let asked = proxy.requests().of("/oauth2/auth");
    assert_eq!(asked.len(), 3);
    for (name, value) in [
        ("cookie", sent[0].1),
        ("x-forwarded-host", HOST),
        ("x-forwarded-uri", "/guide"),
    ] {
        assert_eq!(asked[2].headers.get(name), Some(value), "{name}");
    }
    let reached = origin.requests().of("/guide");
    assert_eq!(reached[0].headers.get("cookie"), Some("theme=dark"));
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

/// The arguments of the command of the page that has this word.
fn arguments(word: &str) -> Vec<&'static str> {
    let line = PAGE
        .lines()
        .find(|line| line.starts_with("sluice sign") && line.contains(word));
    line.unwrap().split(' ').skip(2).collect()
}

async fn check_links(edge: &Edge) {
    let of_page = arguments("report.pdf");
    let urls = [of_page[0], "https://www.example.com/a%20b?v=1&w=2"];
    for url in urls {
        let mut links = links(url, "2026a");
        assert!(!links.is_empty());
        links.push(sign(edge, &[&[url], &of_page[1..]].concat()));
        for link in links {
            let longer = link.replace("sluice-expires=1", "sluice-expires=2");
            for (link, status) in [(link, 200), (longer, 403)] {
                let response = get(edge, "www.example.com", &target(&link), &[]).await;
                assert_eq!(response.status, status, "{link}");
            }
        }
        let without = get(edge, "www.example.com", &target(url), &[]).await;
        assert_refused(&without, url);
    }
}

async fn check_films(edge: &Edge) {
    let set_cookie = sign(edge, &arguments("--cookie"));
    assert!(set_cookie.contains("; Secure"), "{set_cookie}");
    let cookie = [("cookie", set_cookie.split(';').next().unwrap())];
    for (path, status) in [
        ("/films/7/index.m3u8", 200),
        ("/films/7/1.ts?n=1", 200),
        ("/films/70/1.ts", 403),
        ("/films/7", 403),
    ] {
        let response = get(edge, "www.example.com", path, &cookie).await;
        assert_eq!(response.status, status, "{path}");
    }
}
