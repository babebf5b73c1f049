// SPDX-License-Identifier: Apache-2.0
//! A signature opens exactly its URL or its prefix, until it expires.

use sluice_tests::edge::Edge;
use sluice_tests::eventually;

use super::world::{OUTSIDE, Rules, assert_refused, origin, send, sign, target};

const RULES: &str = "any_of:\n- signed: {keys: {a: {env: SIGNING_KEY}}}\n";

async fn get(edge: &Edge, target: &str) -> u16 {
    edge.get(target).await.status
}

#[tokio::test]
async fn a_link_opens_its_url_and_neither_another_url_nor_a_changed_link_is_answered() {
    let (origin, rules) = (origin().await, Rules::new(RULES));
    let edge = rules.edge(&origin).start().await;
    let link = target(&sign(
        &edge,
        &["http://edge.test/a/b?v=1", "--expires", "1h"],
    ));
    for _ in 0..3 {
        assert_eq!(get(&edge, &link).await, 200, "{link}");
    }
    let head = edge.send("HEAD", &link, &[]).await;
    let part = edge.send("GET", &link, &[("range", "bytes=0-9")]).await;
    assert_eq!((head.status, part.status, part.body.len()), (200, 206, 10));
    assert_eq!(
        get(&edge, &link.replace("/a/b", "/a/../a/./%62")).await,
        200
    );
    assert_eq!(
        origin.requests().total(),
        1,
        "{}",
        origin.requests().summary()
    );
    // The origin and the key never see a parameter of the signature.
    assert_eq!(origin.requests().all()[0].target, "/a/b?v=1");
    for wrong in [
        "/a/b?v=1".to_owned(),
        link.replace("/a/b", "/a/c"),
        link.replace("v=1", "v=2"),
        link.replace("sluice-key=a", "sluice-key=b"),
        link.replace("sluice-key=", "sluice%2Dkey="),
        link.replace("sluice-key=", "Sluice-Key="),
        format!("{link}&sluice-key=a"),
        format!("{link}&x=1"),
        format!("{}0", link),
    ] {
        assert_refused(&edge.get(&wrong).await, &wrong);
    }
    let post = edge.send("POST", &link, &[]).await;
    assert_refused(&post, "a POST");
    assert_eq!(origin.requests().total(), 1);
}

#[tokio::test]
async fn a_link_is_refused_after_its_expiry_even_for_the_rest_of_a_download() {
    let (origin, rules) = (origin().await, Rules::new(RULES));
    let edge = rules.edge(&origin).start().await;
    let link = target(&sign(&edge, &["http://edge.test/a", "--expires", "1s"]));
    assert_eq!(get(&edge, &link).await, 200);
    // The clocks may differ by a minute.
    let range = [("range", "bytes=500-")];
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    eventually("the end of the link", async || {
        edge.send("GET", &link, &range).await.status == 403
    })
    .await;
    assert_refused(&edge.get(&link).await, "an expired link");
}

#[tokio::test]
async fn a_cookie_opens_its_prefix_and_leaves_the_request() {
    let (origin, rules) = (origin().await, Rules::new(RULES));
    let edge = rules.edge(&origin).start().await;
    let arguments = [
        "http://edge.test/a/",
        "--prefix",
        "--cookie",
        "--expires",
        "1d",
    ];
    let set_cookie = sign(&edge, &arguments);
    assert!(
        set_cookie.ends_with("; Path=/a/; Max-Age=86400; HttpOnly; SameSite=Lax"),
        "{set_cookie}"
    );
    let cookie = set_cookie.split(';').next().unwrap();
    let with = |cookie: String| {
        let edge = &edge;
        move |target: &'static str| {
            let cookie = cookie.clone();
            async move {
                edge.send("GET", target, &[("cookie", cookie.as_str())])
                    .await
            }
        }
    };
    let alone = with(cookie.to_owned());
    for _ in 0..2 {
        assert_eq!(alone("/a/x?q=1").await.status, 200);
    }
    assert!(alone("/a/x?q=1").await.is_hit());
    for other in ["/ab", "/a", "/a/../b", "/a/%2e%2e/b", "/b"] {
        assert_refused(&alone(other).await, other);
    }
    let beside = with(format!("theme=dark; {cookie}; id=7"));
    assert_eq!(beside("/a/y").await.status, 200);
    let seen = origin.requests().of("/a/y");
    assert_eq!(seen[0].headers.get("cookie"), Some("theme=dark; id=7"));
    let seen = origin.requests().of("/a/x?q=1");
    assert_eq!((seen.len(), seen[0].headers.get("cookie")), (1, None));
}

#[tokio::test]
async fn an_address_or_a_signature_is_enough() {
    let both = format!("{RULES}- address: [10.0.0.0/8]\n");
    let (origin, rules) = (origin().await, Rules::new(&both));
    let edge = rules.edge(&origin).start().await;
    assert_eq!(send(&edge, "10.1.2.3", "GET", "/a").await.status, 200);
    assert_refused(&send(&edge, OUTSIDE, "GET", "/a").await, "neither");
    let arguments = [
        "http://edge.test/a",
        "--expires",
        "1h",
        "--from",
        "198.51.100.0/24",
    ];
    let link = target(&sign(&edge, &arguments));
    assert_eq!(send(&edge, OUTSIDE, "GET", &link).await.status, 200);
    let elsewhere = send(&edge, "203.0.113.1", "GET", &link).await;
    assert_refused(&elsewhere, "another address");
}
