// SPDX-License-Identifier: Apache-2.0
//! A server is asked about WebSockets and about requests with long bodies, and may be reached by HTTPS.

use std::time::Duration;

use sluice_tests::client::{Client, request};
use sluice_tests::mesh::tls_front::TlsFront;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use tokio::time::timeout;

use super::world::{Rules, origin};
use crate::origin::hop::before;
use crate::origin::websocket::{connect, echo, handshake, say};

/// A server that admits what is below `/in/`.
async fn checker() -> Origin {
    let checker = Origin::start().ready().await;
    checker.on("/auth/in/*", Reply::status(202).empty());
    checker.on("/auth/out/*", Reply::status(403).empty());
    checker
}

fn rules(url: &str, more: &str) -> Rules {
    Rules::new(&format!(
        "any_of: [{{forward: {{url: '{url}/auth', append: true{more}}}}}]\n"
    ))
}

#[tokio::test]
async fn a_websocket_is_asked_about_once_at_the_handshake() {
    let checker = checker().await;
    let rules = rules(&checker.url(), "");
    let edge = before(echo().await).env("SLUICE_ACCESS", rules.path());
    let edge = edge.start().await;
    let mut client = connect(&edge, "/in/chat").await;
    for message in ["ping", "pong"] {
        say(&mut client, message).await;
    }
    assert_eq!(checker.requests().total(), 1);
    let mut stranger = Client::connect(edge.address()).await;
    let refused = stranger.exchange(handshake("/out/chat")).await;
    assert_eq!(refused.status, 403, "{refused}");
}

#[tokio::test]
async fn a_long_body_arrives_whole_or_is_refused_and_never_hangs() {
    let (origin, checker) = (origin().await, checker().await);
    let gate = Gate::new();
    checker.on("/auth/in/held", Reply::status(200).empty().hold(&gate));
    let rules = rules(&checker.url(), "");
    let edge = rules.edge(&origin).start().await;
    let body = "b".repeat(1 << 20);
    let length = [("content-length", "1048576")];
    for path in ["/in/held", "/in/free", "/out/free"] {
        let mut client = Client::connect(edge.address()).await;
        client.send(request("POST", path, &length)).await.unwrap();
        let exchange = timeout(Duration::from_secs(60), async {
            // The edge may close the connection before it has read the body.
            let _ = client.send_more(&body).await;
            client.response().await
        });
        let response = exchange.await.unwrap();
        let status = response.map(|response| response.status);
        let reached = origin.requests().of(path);
        match path {
            "/in/held" => assert!(matches!(status, Ok(413) | Err(_)), "{path}: {status:?}"),
            "/in/free" => assert!(
                matches!(status, Ok(200 | 413) | Err(_)),
                "{path}: {status:?}"
            ),
            _ => assert!(
                matches!(status, Ok(403 | 413) | Err(_)),
                "{path}: {status:?}"
            ),
        }
        let is_whole = matches!(status, Ok(200));
        assert_eq!(reached.len(), usize::from(is_whole), "{path}");
        for request in reached {
            assert_eq!(request.headers.get("content-length"), Some("1048576"));
        }
    }
    gate.open();
    assert_eq!(edge.get("/in/a").await.status, 200);
}

#[tokio::test]
async fn a_server_with_https_is_verified_by_its_ca() {
    let (origin, checker) = (origin().await, checker().await);
    let [front, other] = [(); 2].map(|()| TlsFront::start("localhost", checker.address()));
    let url = format!("https://localhost:{}", front.address().port());
    for (ca, status) in [(other.ca_file(), 503), (front.ca_file(), 200)] {
        let rules = rules(&url, &format!(", ca: '{}'", ca.display()));
        let edge = rules.edge(&origin).start().await;
        let response = edge.get("/in/a").await;
        assert_eq!(response.status, status, "{response}");
    }
    assert_eq!(front.names(), ["localhost"]);
    assert_eq!(origin.requests().total(), 1);
}
