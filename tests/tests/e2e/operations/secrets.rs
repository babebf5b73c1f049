// SPDX-License-Identifier: Apache-2.0
//! Secrets do not appear in the log, the configuration and the command lines. A secret from a log is useless outside.

use serde_json::json;
use sluice_tests::edge::direct::Direct;
use sluice_tests::edge::purger::{Purger, TOKEN};
use sluice_tests::edge::{ADMIN_PAGES, Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::http::message::Headers;
use sluice_tests::machine::process::command_lines;
use sluice_tests::origin::{Origin, Reply};
use tempfile::TempDir;

/// The secret access key of a scripted bucket.
const S3_SECRET: &str = "scripted-secret-value";
/// Credentials of a client.
const PASSWORD: &str = "the-password-of-a-client";
/// Prefix of the link header in Envoy's log.
const LINK: &str = "'x-sluice-link', '";
/// The part of a link that is secret.
const SECRET_DIGITS: usize = 32;

/// An edge that accepts purges, started as a user starts it, or with this log level.
fn purgeable(origin: &Origin, purger: &Purger, level: Option<&'static str>) -> Builder {
    let edge = purger.open(Edge::scripted_bucket(origin)).workers(1);
    match level {
        None => edge,
        log_level => edge.direct(Direct {
            log_level,
            ..Direct::default()
        }),
    }
}

/// Sends a miss, a hit, a pass, a purge, and a purge with a wrong token.
async fn use_all(edge: &Edge, purger: &Purger, path: &str) {
    let _ = edge.get(path).await;
    eventually("a hit", async || edge.get(path).await.is_hit()).await;
    let headers = [("authorization", PASSWORD), ("cookie", PASSWORD)];
    let _ = edge.send("GET", path, &headers).await;
    let _ = edge.send("OPTIONS", path, &headers).await;
    let purged = purger
        .call(&json!({"path": path, "everything": true}))
        .await;
    assert_eq!(purged.status, 400, "{purged}");
    let purged = purger.call(&json!({"everything": true})).await;
    assert_eq!(purged.status, 200, "{purged}");
    let wrong = [("authorization", format!("Bearer {PASSWORD}"))];
    let wrong = wrong
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    assert_eq!(
        purger.send("POST", "/purge", &wrong, "{}").await.status,
        401
    );
}

/// Returns the links in a log.
fn links(log: &str) -> Vec<&str> {
    let links = log.split(LINK).skip(1);
    links.filter_map(|rest| rest.split('\'').next()).collect()
}

#[tokio::test]
async fn below_debug_no_secret_is_in_the_log() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000).max_age(600));
    let purger = Purger::new();
    let edge = purgeable(&origin, &purger, None).start().await;
    edge.admin_send("POST", "/logging?level=info").await;
    use_all(&edge, &purger, "/a").await;
    let log = edge.log();
    edge.admin_send("POST", "/logging?level=trace").await;
    use_all(&edge, &purger, "/b").await;
    // Control: at level trace the log has all secrets, except secrets that never leave the process.
    eventually("the filter's link in the log", async || {
        !links(&edge.log()).is_empty()
    })
    .await;
    let traced = edge.log();
    for secret in [TOKEN, PASSWORD, "AWS4-HMAC-SHA256", "Signature="] {
        assert!(traced.contains(secret), "{secret}");
        assert!(!log.contains(secret), "{secret}");
    }
    assert!(!traced.contains(S3_SECRET));
    let secret = &links(&traced)[0][..SECRET_DIGITS];
    assert!(!log.contains(LINK) && !log.contains(secret), "{log}");
    edge.admin_send("POST", "/logging?level=warning").await;
}

#[tokio::test]
async fn a_log_at_debug_begins_with_what_is_in_it_and_one_at_info_does_not() {
    const NOTICE: &str = "cookies, credentials, the tokens of purges, signatures";
    let origin = Origin::start().ready().await;
    for (level, lines) in [("info", 0), ("debug", 1), ("trace", 1)] {
        let purger = Purger::new();
        let edge = purgeable(&origin, &purger, Some(level)).start().await;
        let said = edge.log_lines(NOTICE).len();
        // Each VM writes this line: the VM that only checks the configuration, and the VM of each worker.
        assert_eq!(said.min(1), lines, "{level}");
    }
}

#[tokio::test]
async fn a_link_that_was_logged_is_worth_nothing_from_outside() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000).max_age(600));
    let purger = Purger::new();
    let edge = purgeable(&origin, &purger, None).start().await;
    edge.admin_send("POST", "/logging?level=trace").await;
    let stored = edge.get("/a").await.stamp("/site/a");
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    eventually("a link in the log", async || !links(&edge.log()).is_empty()).await;
    edge.admin_send("POST", "/logging?level=warning").await;
    let log = edge.log();
    let link = links(&log)[0];
    let fetched = origin.requests().total();
    // A link is useless for every purpose.
    for purpose in "flcabksprizd".chars() {
        let forged = format!(
            "{}{purpose}{}",
            &link[..SECRET_DIGITS],
            &link[SECRET_DIGITS + 1..]
        );
        let headers = [
            ("X-Sluice-Link", forged.as_str()),
            ("x-sluice-proof", "1"),
            ("x-sluice-path", "/other"),
        ];
        let answer = edge.send("GET", "/a", &headers).await;
        assert!(answer.is_hit(), "{purpose}: {answer}");
        assert_eq!(answer.stamp("/site/a"), stored, "{purpose}");
        let refused = edge.send("GET", "/a%2fb", &headers).await;
        assert_eq!(refused.status, 400, "{purpose}: {refused}");
    }
    assert_eq!(origin.requests().total(), fetched);
    let internal = |headers: &Headers| headers.any_with_prefix("x-sluice-");
    assert!(
        !origin
            .requests()
            .all()
            .iter()
            .any(|seen| internal(&seen.headers))
    );
}

#[tokio::test]
async fn no_token_is_in_the_configuration_or_a_command_line() {
    let origin = Origin::start().ready().await;
    let purger = Purger::new();
    let edge = purgeable(&origin, &purger, None).start().await;
    for page in ADMIN_PAGES {
        let dump = edge.admin_get(page).await;
        assert_eq!(dump.status, 200, "{page}");
        assert!(
            !String::from_utf8_lossy(&dump.body).contains(TOKEN),
            "{page}"
        );
    }
    for file in std::fs::read_dir(edge.folder().join("state")).unwrap() {
        let text = std::fs::read(file.unwrap().path()).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&text).contains(TOKEN));
    }
    assert!(!command_lines().any(|line| line.contains(TOKEN)));
    // Envoy's environment does not have the token either.
    let variables = std::fs::read(format!("/proc/{}/environ", edge.envoy_pid())).unwrap();
    assert!(!String::from_utf8_lossy(&variables).contains(TOKEN));
    // Control: the configuration has the token's hash.
    let dump = edge.admin_get("/config_dump").await;
    assert!(String::from_utf8_lossy(&dump.body).contains("token_sha256"));
}

/// Envoy's extensions can read its environment, so a token there would let each of them purge the site.
#[tokio::test]
async fn the_environment_of_envoy_has_no_token_of_a_site() {
    const SITES_TOKEN: &str = "the-token-of-one-site";
    let origin = Origin::start().ready().await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("sites.yaml");
    let url = origin.url();
    let sites = format!("sites:\n- name: a\n  origin: {url}\n  purge_token: TOKEN_OF_A\n");
    std::fs::write(&file, sites).unwrap();
    let edge = Purger::new().open(Builder::new().env("SLUICE_SITES", file.display().to_string()));
    let edge = edge.env("TOKEN_OF_A", SITES_TOKEN).start().await;
    let environment = std::fs::read(format!("/proc/{}/environ", edge.envoy_pid())).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    // Control: this is Envoy's environment.
    assert!(environment.contains("SLUICE_CACHE_SECRET="));
    for secret in [SITES_TOKEN, TOKEN] {
        assert!(!environment.contains(secret), "{secret}");
    }
}
