// SPDX-License-Identifier: Apache-2.0
//! A key is nowhere but in its source, and a signature is in no log or trace.

use serde_json::Value;
use sluice_tests::edge::{ADMIN_PAGES, Edge};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};

use super::world::{KEY, Rules, origin, sign, target};

const RULES: &str = "any_of:\n- signed: {keys: {a: {env: SIGNING_KEY}}}\n";

fn contains(bytes: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(bytes).contains(text)
}

#[tokio::test]
async fn a_key_shows_nowhere() {
    let (origin, rules) = (origin().await, Rules::new(RULES));
    let edge = rules.edge(&origin).start().await;
    let link = target(&sign(&edge, &["http://edge.test/a", "--expires", "1h"]));
    assert_eq!(edge.get(&link).await.status, 200);
    for page in ADMIN_PAGES {
        let dump = edge.admin_get(page).await;
        assert!(!contains(&dump.body, KEY), "{page}");
    }
    // Control: the configuration has the key in sealed form.
    assert!(contains(
        &edge.admin_get("/config_dump").await.body,
        "sealed"
    ));
    let environment = std::fs::read(format!("/proc/{}/environ", edge.envoy_pid())).unwrap();
    assert!(!contains(&environment, KEY));
    for command in ["render", "check", "settings"] {
        let output = edge.entry_point(command).output().unwrap();
        assert!(
            !contains(&output.stdout, KEY) && !contains(&output.stderr, KEY),
            "{command}"
        );
    }
    let explained = edge
        .entry_point("explain")
        .arg(format!("http://edge.test{link}"))
        .output();
    let explained = explained.unwrap();
    assert!(!contains(&explained.stdout, KEY));
    assert!(!edge.log().contains(KEY));
}

async fn line(edge: &Edge, path: &str) -> Value {
    let find = || {
        let log = edge.log();
        let mut lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.find(|line| line["path"] == path)
    };
    eventually("a line in the access log", async || find().is_some()).await;
    find().unwrap()
}

#[tokio::test]
async fn the_access_log_names_key_and_reason_and_hides_signatures() {
    let (origin, rules) = (origin().await, Rules::new(RULES));
    let collector = Origin::start().ready().await;
    collector.on("/v1/traces", Reply::ok(0).empty());
    let edge = rules
        .edge(&origin)
        .env("SLUICE_ACCESS_LOG", "json")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())
        .start()
        .await;
    let link = target(&sign(&edge, &["http://edge.test/a?v=1", "--expires", "1h"]));
    let signature = link.rsplit_once('=').unwrap().1.to_owned();
    assert_eq!(edge.get(&link).await.status, 200);
    let wrong = link.replace("/a?", "/b?");
    assert_eq!(edge.get(&wrong).await.status, 403);
    assert_eq!(edge.get("/c").await.status, 403);
    let hidden = "?v=1&sluice-key=…&sluice-expires=…&sluice-signature=…";
    let admitted = line(&edge, &format!("/a{hidden}")).await;
    assert_eq!(admitted["signing_key"], "a", "{admitted}");
    let refused = line(&edge, &format!("/b{hidden}")).await;
    assert_eq!(refused["access"], "wrong_signature", "{refused}");
    let without = line(&edge, "/c").await;
    assert_eq!(
        (&without["access"], &without["result"]),
        (&"no_proof".into(), &"rejected".into())
    );
    assert!(!edge.log().contains(&signature));
    let has_span = |of: &str| {
        let sent = collector.requests().of("/v1/traces");
        sent.iter().any(|request| contains(&request.body, of))
    };
    for path in ["/a", "/b"] {
        eventually("a span", async || has_span(&format!("{path}{hidden}"))).await;
    }
    assert!(!has_span(&signature));
}
