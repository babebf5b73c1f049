// SPDX-License-Identifier: Apache-2.0
//! IPv6 beside IPv4, and IPv6 alone.

use sluice_tests::client::{self, Client};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::machine::network;
use sluice_tests::machine::ports::free_port;
use sluice_tests::origin::{Origin, Reply};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const FAMILIES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];
/// Addresses of a machine on a network, beside those of loopback.
const IPV4: &str = "192.0.2.1/32";
const IPV6: &str = "2001:db8::1/128";

/// An edge in front of an origin with a name. The name has an address of either family, and the origin listens on
/// IPv6 only.
async fn edge_of_a_name() -> (Edge, Origin) {
    let address = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), free_port());
    let origin = Origin::start_at(address).ready().await;
    origin.on("/a", Reply::ok(1000));
    let named = format!("http://localhost:{}", address.port());
    let edge = Edge::http(&origin)
        .env("SLUICE_ORIGIN", named)
        .allow_log("no answer from the origin")
        .start()
        .await;
    (edge, origin)
}

/// Statuses that clients of both families get from the listener for clients and from the listener for metrics. The
/// status is 0 where no listener accepts the connection.
async fn statuses(edge: Builder) -> Vec<u16> {
    let edge = edge.metrics().start().await;
    let mut statuses = Vec::new();
    for (port, target) in [
        (edge.address().port(), "/a"),
        (edge.metrics().port(), "/healthz"),
    ] {
        for family in FAMILIES {
            let address = SocketAddr::new(family, port);
            statuses.push(match Client::try_connect(address).await {
                Ok(_) => client::get(address, target).await.status,
                Err(_) => 0,
            });
        }
    }
    assert_eq!(edge.healthcheck(), Some(0));
    statuses
}

#[tokio::test]
async fn an_edge_on_all_addresses_serves_clients_of_both_families() {
    if !network::is_own(&[]) {
        return;
    }
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000));
    let edge = || Edge::http(&origin);
    let all = edge()
        .env("SLUICE_BIND", "::")
        .env("SLUICE_METRICS_BIND", "::");
    assert_eq!(statuses(all).await, [200; 4]);
    assert_eq!(statuses(edge()).await, [200, 0, 200, 0], "as a control");
}

#[tokio::test]
async fn the_access_log_has_the_clients_own_address_of_either_family() {
    if !network::is_own(&[]) {
        return;
    }
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000));
    let edge = Edge::http(&origin).env("SLUICE_BIND", "::").start().await;
    for family in FAMILIES {
        let address = SocketAddr::new(family, edge.address().port());
        assert_eq!(client::get(address, "/a").await.status, 200);
        edge.wait_for_log(&format!(" {family} edge.test - HTTP/1.1 GET /a 200"))
            .await;
    }
}

#[tokio::test]
async fn where_a_machine_has_ipv6_only_an_origin_is_reached_by_ipv6() {
    if !network::is_own(&[IPV6]) {
        return;
    }
    let (edge, origin) = edge_of_a_name().await;
    assert_eq!(edge.get("/a").await.status, 200, "{}", edge.log());
    assert_eq!(origin.count("/a"), 1);
}

#[tokio::test]
async fn control_where_a_machine_has_both_families_an_origin_is_reached_by_ipv4() {
    if !network::is_own(&[IPV4, IPV6]) {
        return;
    }
    let (edge, origin) = edge_of_a_name().await;
    assert_eq!(edge.get("/a").await.status, 503, "{}", edge.log());
    assert_eq!(origin.count("/a"), 0);
}
