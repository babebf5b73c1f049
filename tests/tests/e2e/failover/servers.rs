// SPDX-License-Identifier: Apache-2.0
//! An HTTP origin with several servers uses all of them, and leaves out the ones that fail.

use super::world::named;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};

/// Two servers, which answer every path with their names, and an edge in front of both.
async fn servers() -> (Origin, Origin, Builder) {
    let (a, b) = tokio::join!(Origin::start().ready(), Origin::start().ready());
    a.on("*", named("a"));
    b.on("*", named("b"));
    let edge = Edge::http(&a).env("SLUICE_ORIGIN", format!("{}, {}", a.url(), b.url()));
    (a, b, edge)
}

#[tokio::test]
async fn all_servers_get_requests_and_a_refused_one_costs_no_client_an_error() {
    let (a, b, edge) = servers().await;
    let edge = edge.start().await;
    for number in 0..40 {
        assert_eq!(edge.get(&format!("/{number}")).await.status, 200);
    }
    let asked = (a.requests().total(), b.requests().total());
    assert!(asked.0 >= 5 && asked.1 >= 5, "{asked:?}");
    a.refuse().await;
    for number in 0..40 {
        let response = edge.get(&format!("/refused-{number}")).await;
        assert_eq!(response.status, 200, "{number}: {response}");
    }
}

#[tokio::test]
async fn a_server_that_fails_its_health_check_gets_no_request_until_it_is_well() {
    let (a, b, edge) = servers().await;
    a.on("/healthz", Reply::status(503));
    let edge = edge
        .env("SLUICE_ORIGIN_HEALTH_CHECK", "/healthz")
        .start()
        .await;
    let number = std::cell::Cell::new(0);
    let asks = async |count: usize| {
        for _ in 0..count {
            number.set(number.get() + 1);
            let path = format!("/{}", number.get());
            assert_eq!(edge.get(&path).await.status, 200);
        }
    };
    a.wait_for_requests("/healthz", 2).await;
    let of_clients = |origin: &Origin| origin.requests().total() - origin.count("/healthz");
    eventually("the server is left out", async || {
        let before = of_clients(&a);
        asks(20).await;
        of_clients(&a) == before
    })
    .await;
    assert!(of_clients(&b) >= 20);
    a.on("/healthz", Reply::status(200));
    eventually("the server is used again", async || {
        let before = of_clients(&a);
        asks(20).await;
        of_clients(&a) > before
    })
    .await;
}
