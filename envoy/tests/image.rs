// SPDX-License-Identifier: Apache-2.0
//! The settings of the container image.
#![allow(clippy::unwrap_used, clippy::panic)]

use sluice::settings::docs;

const CONFIG: &str = include_str!("../image/config.json");

fn config() -> serde_json::Value {
    serde_json::from_str(CONFIG).unwrap()
}

#[test]
fn the_image_sets_only_what_is_a_setting() {
    let variables = config()["Env"].as_array().unwrap().clone();
    for variable in variables {
        let (name, _) = variable.as_str().unwrap().split_once('=').unwrap();
        let row = format!("| `{name}` |");
        assert!(docs::tables().contains(&row), "{name}");
    }
}

#[test]
fn the_image_is_not_roots_and_is_watched() {
    let config = config();
    let user = config["User"].as_str().unwrap().to_owned();
    assert!(
        user.split(':')
            .all(|id| id.parse().is_ok_and(|id: u32| id > 0)),
        "{user}"
    );
    assert_eq!(config["Healthcheck"]["Test"][2], "healthcheck");
}
