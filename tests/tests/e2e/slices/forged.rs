// SPDX-License-Identifier: Apache-2.0
//! The internal headers of slices do nothing in a client's request, and reach no client and no origin.

use super::world::{Asked, KNOWN, OBJECT, SLICE, UNKNOWN, assert_whole, edge, object, origin};
use sluice_tests::edge::Edge;
use sluice_tests::origin::Reply;

fn forgeries() -> Vec<(&'static str, String)> {
    vec![
        ("x-sluice-slices", format!("0-9 {OBJECT} {SLICE} 0")),
        ("x-sluice-slices", "nonsense".to_owned()),
        ("x-sluice-slice", "0".to_owned()),
        ("x-sluice-slice", "again".to_owned()),
        ("x-sluice-slice-state", "changed".to_owned()),
        ("x-sluice-slice-state", "hit".to_owned()),
        (
            "x-sluice-link",
            "0123456789abcdef0123456789abcdefn0000000100000001".to_owned(),
        ),
        ("x-sluice-link", "1".to_owned()),
    ]
}

/// Sends requests with each forged header, and with all of them.
async fn forge(edge: &Edge) {
    let forged = forgeries();
    let all: Vec<_> = forged
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let mut requests: Vec<&[(&str, &str)]> = all.chunks(1).collect();
    requests.push(&all);
    for headers in requests {
        let small = edge.get("/small").await.stamp("/small");
        let response = edge.send("GET", "/small", headers).await;
        assert_eq!(response.stamp("/small"), small, "{headers:?}");
        for path in [KNOWN, UNKNOWN] {
            let response = edge.send("GET", path, headers).await;
            assert_whole(&response, path, 1);
            assert!(!response.headers.any_with_prefix("x-sluice-"), "{response}");
        }
    }
}

#[tokio::test]
async fn forged_headers_change_no_response_of_an_edge_with_slices() {
    let origin = origin(&object(1)).await;
    origin.on("/small", Reply::ok(1_000).max_age(600));
    let edge = edge(&origin).start().await;
    forge(&edge).await;
    let asked = Asked::of(origin.requests(), KNOWN);
    assert_eq!((asked.heads, asked.wholes), (1, 0));
    asked.assert_each_slice_once();
    let requests = origin.requests().all();
    let clean =
        |headers: &sluice_tests::http::message::Headers| !headers.any_with_prefix("x-sluice-");
    assert!(requests.iter().all(|request| clean(&request.headers)));
}

#[tokio::test]
async fn forged_headers_change_no_response_of_an_edge_without_slices() {
    let origin = origin(&object(1)).await;
    origin.on("/small", Reply::ok(1_000).max_age(600));
    let edge = Edge::http(&origin).origin_decides();
    let edge = edge.env("SLUICE_SLICE_BYTES", "0").start().await;
    forge(&edge).await;
    let asked = Asked::of(origin.requests(), KNOWN);
    assert_eq!(asked.total(), asked.wholes, "{asked:?}");
}
