// SPDX-License-Identifier: Apache-2.0
//! The page of the sites on the listener for metrics, in a real browser.

use sluice_tests::client::browser::Browser;
use sluice_tests::client::{self, Client, request};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::origin::{Origin, Reply};
use tempfile::TempDir;

const HOSTS: [&str; 2] = ["shop.test", "docs.test"];

/// An edge with the sites `shop` and `docs` in front of one origin.
async fn edge_of(origin: &Origin, folder: &TempDir) -> Edge {
    let url = origin.url();
    let sites = HOSTS.map(|host| {
        let name = host.trim_end_matches(".test");
        format!("- {{name: {name}, hosts: [{host}], origin: \"{url}\"}}\n")
    });
    let path = folder.path().join("sites.yaml");
    std::fs::write(&path, format!("sites:\n{}", sites.concat())).unwrap();
    let edge = Builder::new().env("SLUICE_SITES", path.to_str().unwrap());
    edge.metrics().start().await
}

/// Requests two stored objects and an error of the site `shop`, again and again.
async fn load(address: std::net::SocketAddr) {
    let mut client = Client::connect(address).await;
    loop {
        for path in ["/a", "/b", "/fails"] {
            let asked = request("GET", path, &[("host", HOSTS[0])]);
            let _ = client.exchange(asked).await;
        }
        tokio::task::yield_now().await;
    }
}

/// The text of the cell of a site in a column.
fn cell<'a>(page: &'a str, site: &str, column: &str) -> &'a str {
    let (_, body) = page.split_once("<tbody id=\"sites\">").expect("a table");
    let mut rows = body.split("<tr>");
    let row = rows.find(|row| row.contains(&format!(">{site}</th>")));
    let row = row.unwrap_or_else(|| panic!("no row of {site}: {body}"));
    let (_, cell) = row
        .split_once(&format!("data-column=\"{column}\""))
        .expect(column);
    let (_, text) = cell.split_once('>').expect("a cell");
    text.split("</td>").next().unwrap()
}

fn number(text: &str) -> f64 {
    let digits = text.trim_end_matches(" %").replace(',', "");
    digits
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[tokio::test]
async fn the_page_shows_the_rates_of_each_site_and_breaks_no_policy_of_its_own() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let (origin, folder) = (Origin::start().ready().await, TempDir::new().unwrap());
    origin.on("*", Reply::ok(5_000).max_age(600));
    origin.on("/fails", Reply::status(503));
    let edge = edge_of(&origin, &folder).await;
    let load = tokio::spawn(load(edge.address()));
    let visit = browser.visit(&format!("http://{}/", edge.metrics())).await;
    load.abort();
    let page = &visit.document;
    assert!(page.contains("data-state=\"live\""), "{page}");
    assert!(number(cell(page, "shop", "requests")) > 0.0, "{page}");
    let hits = number(cell(page, "shop", "hit"));
    assert!(
        hits > 50.0 && hits < 80.0,
        "two of three requests are hits, not {hits} %"
    );
    assert!(number(cell(page, "shop", "errors")) > 20.0, "{page}");
    assert!(number(cell(page, "shop", "origin")) > 0.0, "{page}");
    assert!(cell(page, "shop", "cache").contains(" KiB of "), "{page}");
    assert_eq!(cell(page, "docs", "requests"), "0.0");
    assert_eq!(cell(page, "docs", "hit"), "–");
    assert_eq!(visit.messages, [""; 0]);
    assert!(
        !page.contains("/fails"),
        "no URL of a client is on the page"
    );
}

#[tokio::test]
async fn control_the_browser_logs_a_script_that_the_policy_of_a_page_forbids() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let origin = Origin::start().ready().await;
    let page =
        Reply::text("<script>document.title = 1</script>").header("content-type", "text/html");
    origin.on(
        "*",
        page.header("content-security-policy", "default-src 'none'"),
    );
    let visit = browser.visit(&origin.url()).await;
    let violation = "Content Security Policy";
    assert!(
        visit.messages.iter().any(|line| line.contains(violation)),
        "{visit:?}"
    );
}

#[tokio::test]
async fn the_page_and_its_totals_are_for_reading_alone_and_name_no_other_server() {
    let (origin, folder) = (Origin::start().ready().await, TempDir::new().unwrap());
    let edge = edge_of(&origin, &folder).await;
    let page = client::get(edge.metrics(), "/").await;
    assert_eq!(
        page.headers.get("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.headers.get("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'sha256-"),
        "{policy}"
    );
    assert_eq!(page.headers.get("x-content-type-options"), Some("nosniff"));
    let totals = client::get(edge.metrics(), "/top.json").await;
    assert_eq!(totals.headers.get("content-type"), Some("application/json"));
    for (method, target) in [("POST", "/"), ("POST", "/top.json")] {
        let mut client = Client::connect(edge.metrics()).await;
        let answer = client
            .exchange(request(method, target, &[("content-length", "0")]))
            .await;
        assert_eq!(answer.status, 405, "{method} {target}");
    }
    assert_eq!(client::get(edge.metrics(), "/?x").await.status, 404);
}
