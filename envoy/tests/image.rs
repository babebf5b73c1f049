// SPDX-License-Identifier: Apache-2.0
//! The image runs the same entry point; here it runs as it would in there, without an engine.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use sluice::setting_docs;
use support::edge::Variables;
use support::get;
use support::modules::APPROVING;
use support::origin::Origin;

const DOCKERFILE: &str = include_str!("../Dockerfile");

/// The variables that the image sets.
fn image_variables() -> Vec<(&'static str, &'static str)> {
    let text = DOCKERFILE.split_once("\nENV ").unwrap().1;
    let lines = text.lines().take_while(|line| line.contains('='));
    lines
        .map(|line| {
            line.trim()
                .trim_end_matches(['\\', ' '])
                .split_once('=')
                .unwrap()
        })
        .collect()
}

#[test]
fn the_image_sets_only_what_is_a_setting() {
    let variables = image_variables();
    assert_eq!(variables.len(), 4, "{variables:?}");
    for (name, _) in variables {
        assert!(setting_docs::find(name).is_some(), "{name}");
    }
}

#[test]
fn the_entry_point_runs_on_all_addresses_as_in_the_image() {
    let origin = Origin::start();
    let bind = image_variables()
        .into_iter()
        .find(|(name, _)| *name == "BIND")
        .unwrap()
        .1;
    let edge = Variables::new(&origin.url(), APPROVING)
        .set("BIND", bind)
        .start();
    assert!(get(edge.port, "/a").ends_with("origin\n"));
    let mut check = edge.command();
    assert_eq!(check.arg("healthcheck").status().unwrap().code(), Some(0));
    assert!(std::net::TcpStream::connect(("127.0.0.2", edge.port)).is_ok());
    assert!(
        std::net::TcpStream::connect(("127.0.0.2", edge.admin)).is_err(),
        "the admin is on loopback's first address only"
    );
}
