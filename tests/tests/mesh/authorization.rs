// SPDX-License-Identifier: Apache-2.0
//! A path that Istio forbids stays forbidden when the cache has the object, in every spelling of the path.

use serde_json::{Value, json};
use sluice_tests::client::Response;
use sluice_tests::eventually;
use sluice_tests::mesh::gateway::Gateway;

/// Spellings of `/private/a.bin`.
const SPELLINGS: [&str; 12] = [
    "/private/a.bin",
    "/%70rivate/a.bin",
    "/private/%61.bin",
    "//private/a.bin",
    "/private//a.bin",
    "/./private/a.bin",
    "/public/../private/a.bin",
    "/%2e/private/a.bin",
    "/public/%2e%2e/private/a.bin",
    "/private%2fa.bin",
    "/private%2Fa.bin",
    "/private/a.bin?x=1",
];

/// Spellings of `/a.bin`.
const TOKEN_SPELLINGS: [&str; 3] = ["/a.bin", "/%61.bin", "//a.bin"];

/// The public half of a key pair, and a token signed with it that never expires: RS256 of
/// `{"iss":"test","sub":"reader"}`.
const JWKS: &str = include_str!("jwks.json");
const TOKEN: &str = include_str!("token.txt");

/// Whether the request is refused by authorization, or because its path is not valid.
pub fn refused(response: &Response) -> bool {
    [403, 400].contains(&response.status)
}

/// Applies an AuthorizationPolicy with this action and these rules to the gateway.
fn authorize(gateway: &Gateway, namespace: &str, action: &str, rules: &Value) {
    let policy = json!({
        "apiVersion": "security.istio.io/v1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "test", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"istio": namespace}},
            "action": action,
            "rules": rules,
        },
    });
    gateway.apply(&policy.to_string());
}

/// Denies these paths. It takes a moment until every worker has the rule.
pub fn deny(gateway: &Gateway, namespace: &str, paths: &str) {
    let rules = json!([{"to": [{"operation": {"paths": [paths]}}]}]);
    authorize(gateway, namespace, "DENY", &rules);
}

/// Asserts that `/private/a.bin`, with that `ETag`, is denied in every spelling and for every kind of request.
pub async fn assert_private_is_denied(gateway: &Gateway, etag: &str) {
    for path in SPELLINGS {
        for headers in [
            vec![],
            vec![("if-none-match", etag)],
            vec![("range", "bytes=0-9")],
        ] {
            let response = gateway.send("GET", path, &headers).await;
            assert!(refused(&response), "{path} {headers:?}: {response}");
        }
        let response = gateway.send("HEAD", path, &[]).await;
        assert!(refused(&response), "HEAD {path}: {response}");
    }
}

/// Admits only requests with a reader's token. Returns the value of `Authorization` with this token. It takes a
/// moment until every worker has the rule.
pub fn ask_for_token(gateway: &Gateway, namespace: &str) -> String {
    let authentication = json!({
        "apiVersion": "security.istio.io/v1",
        "kind": "RequestAuthentication",
        "metadata": {"name": "test", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"istio": namespace}},
            "jwtRules": [{"issuer": "test", "jwks": JWKS}],
        },
    });
    gateway.apply(&authentication.to_string());
    let rules = json!([{"from": [{"source": {"requestPrincipals": ["test/reader"]}}]}]);
    authorize(gateway, namespace, "ALLOW", &rules);
    format!("Bearer {}", TOKEN.trim())
}

/// Asserts that `/a.bin`, with that `ETag`, is refused without the token, in every spelling.
pub async fn assert_token_is_asked_for(gateway: &Gateway, bearer: &str, etag: &str) {
    let forged = format!("{bearer}x");
    for path in TOKEN_SPELLINGS {
        for headers in [
            vec![],
            vec![("if-none-match", etag)],
            vec![("authorization", forged.as_str())],
        ] {
            let answer = gateway.send("GET", path, &headers).await;
            assert!(
                [401, 403].contains(&answer.status),
                "{path} {headers:?}: {answer}"
            );
        }
    }
}

#[tokio::test]
async fn a_denied_path_is_denied_in_every_spelling_and_for_what_the_cache_has() {
    let gateway = Gateway::builder("denied").await.start().await;
    gateway.bucket.put_stamped("private/a.bin", 1, 20_000).await;
    gateway.bucket.put_stamped("public/a.bin", 1, 20_000).await;
    let first = gateway.get("/private/a.bin").await;
    let _ = first.stamp("/private/a.bin");
    gateway.hit("/private/a.bin").await;
    // Control: these are spellings of objects that the cache has.
    for path in [
        "/%70rivate/a.bin",
        "//private/a.bin",
        "/public/../private/a.bin",
        "/private/a.bin?x=1",
    ] {
        assert!(gateway.get(path).await.is_hit(), "{path}");
    }
    let missing = gateway.get("/private/missing").await;
    assert_eq!(missing.status, 404, "{missing}");

    deny(&gateway, "denied", "/private/*");
    eventually("the rule", async || {
        refused(&gateway.get("/private/a.bin").await)
    })
    .await;
    assert_private_is_denied(&gateway, first.header("etag")).await;
    // A stored error is a response as well.
    assert!(refused(&gateway.get("/private/missing").await));
    let _ = gateway.get("/public/a.bin").await.stamp("/public/a.bin");
    assert_eq!(gateway.fetches("private/a.bin"), 1);
}

#[tokio::test]
async fn a_token_is_asked_for_also_where_the_cache_has_the_answer() {
    let gateway = Gateway::builder("tokens").await.start().await;
    gateway.bucket.put_stamped("a.bin", 1, 20_000).await;
    let _ = gateway.get("/a.bin").await.stamp("/a.bin");
    let hit = gateway.hit("/a.bin").await;
    let bearer = ask_for_token(&gateway, "tokens");
    let with_token = [("authorization", bearer.as_str())];
    eventually("the rule", async || {
        gateway.get("/a.bin").await.status == 403
    })
    .await;
    eventually("the token", async || {
        gateway.send("GET", "/a.bin", &with_token).await.status == 200
    })
    .await;
    let etag = hit.header("etag");
    assert_token_is_asked_for(&gateway, &bearer, etag).await;
    for path in TOKEN_SPELLINGS {
        let served = gateway.send("GET", path, &with_token).await;
        assert!(served.is_hit(), "{path}: {served}");
        let not_modified = gateway
            .send("GET", path, &[with_token[0], ("if-none-match", etag)])
            .await;
        assert_eq!(not_modified.status, 304, "{path}: {not_modified}");
    }
    assert_eq!(gateway.fetches("a.bin"), 1);
}
