// SPDX-License-Identifier: Apache-2.0
//! A user's password opens a site, and reaches neither the key nor the origin.

use sluice_tests::edge::Edge;
use sluice_tests::eventually;

use super::world::{Rules, origin};

/// `htpasswd -nbs`: ada has the password `secret`, and eve the password `pass:word` with a salt.
const USERS: &str =
    "ada:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\neve:{SSHA}+Oz42b3EHMNaWNlxW/7tiozU6pVzYWx0\n";
const HASH: &str = "5en6G6MezRroT3XKqkdPOmY/BfQ=";
/// `ada:secret`
const ADA: &str = "Basic YWRhOnNlY3JldA==";
/// `eve:pass:word`
const EVE: &str = "Basic ZXZlOnBhc3M6d29yZA==";
/// `ada:wrong`
const WRONG: &str = "Basic YWRhOndyb25n";

async fn get(edge: &Edge, path: &str, authorization: &str) -> u16 {
    let headers = [("authorization", authorization)];
    edge.send("GET", path, &headers).await.status
}

#[tokio::test]
async fn users_share_the_cache_and_nobody_else_gets_a_byte() {
    let (origin, rules) = (
        origin().await,
        Rules::new("any_of: [{basic: {users: users, realm: Docs}}]\nexcept: ['/public/*']\n"),
    );
    std::fs::write(rules.0.path().join("users"), USERS).unwrap();
    let mut edge = rules
        .edge(&origin)
        .env("SLUICE_ACCESS_LOG", "json")
        .start()
        .await;
    let refused = edge.get("/a").await;
    assert_eq!(refused.status, 401, "{refused}");
    let challenge = r#"Basic realm="Docs", charset="UTF-8""#;
    assert_eq!(refused.header("www-authenticate"), challenge, "{refused}");
    assert_eq!(refused.header("cache-control"), "no-store", "{refused}");
    assert_eq!(get(&edge, "/a", WRONG).await, 401);
    assert_eq!(origin.requests().total(), 0);
    for user in [ADA, EVE, ADA] {
        assert_eq!(get(&edge, "/a", user).await, 200, "{user}");
    }
    for other in [WRONG, "Bearer YWRhOnNlY3JldA==", "Basic", ""] {
        assert_eq!(get(&edge, "/a", other).await, 401, "{other}");
        assert_eq!(get(&edge, "/./a", other).await, 401, "{other}");
        assert_eq!(get(&edge, "/public/../a", other).await, 401, "{other}");
    }
    assert_eq!(get(&edge, "/public/x", WRONG).await, 200);
    assert_eq!(origin.count("/a"), 1);
    for request in origin.requests().all() {
        assert_eq!(request.headers.get("authorization"), None, "{request:?}");
    }
    eventually("the user in the log", async || {
        edge.log().contains(r#""access_user":"ada""#)
    })
    .await;
    assert!(edge.log().contains(r#""access":"wrong_password""#));
    let dump = edge.admin_get("/config_dump").await;
    let dump = String::from_utf8_lossy(&dump.body).into_owned();
    assert!(dump.contains("sealed") && !dump.contains(HASH));
    for secret in [HASH, "YWRhOnNlY3JldA", "secret", "wrong\""] {
        assert!(!edge.log().contains(secret), "{secret}");
    }
    let bcrypt = "ada:$2y$05$0123456789\n";
    std::fs::write(rules.0.path().join("users"), bcrypt).unwrap();
    edge.signal(libc::SIGHUP);
    edge.wait_for_log("a hash of bcrypt: expected {SHA} or {SSHA}")
        .await;
    assert_eq!(get(&edge, "/a", ADA).await, 200);
}
