// SPDX-License-Identifier: Apache-2.0
//! The control socket is for the user of the edge alone, and its commands say where they have looked for an edge.

use super::shop::Shop;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;

#[tokio::test]
async fn only_the_user_of_the_edge_can_open_it() {
    let shop = Shop::start(|edge| edge).await;
    let socket = std::fs::metadata(shop.edge.control_socket()).unwrap();
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_command_without_an_edge_names_the_socket_and_the_settings() {
    let shop = Shop::start(|edge| edge).await;
    let missing = shop.edge.folder().join("nowhere.sock");
    let missing = missing.to_str().unwrap();
    for command in ["top", "flights", "origins", "log"] {
        let told = shop.edge.command(&[command, "--socket", missing]).await;
        assert_eq!(told.code, Some(1), "{told:?}");
        for named in [missing, "SLUICE_STATE", "SLUICE_EDGE_PORT", "--socket"] {
            assert!(told.errors.contains(named), "{named}: {told:?}");
        }
    }
}

#[tokio::test]
async fn the_log_is_followed_by_a_query() {
    let shop = Shop::start(|edge| edge).await;
    let mut follower = shop
        .edge
        .start_command(&["log", "-f", "--json", "site=shop result!=hit"]);
    let output = follower.stdout.take().unwrap();
    let line = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).unwrap();
        line
    });
    let line = shop.while_busy(line).await.unwrap();
    follower.kill().unwrap();
    follower.wait().unwrap();
    let decision: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&decision["site"], &decision["path"]),
        (&"shop".into(), &"/cart".into())
    );
    assert_eq!(decision["not_stored"], "set-cookie", "{decision:#}");
    assert!(!line.contains("private"), "{line}");
}
