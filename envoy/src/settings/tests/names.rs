// SPDX-License-Identifier: Apache-2.0
//! The names of settings, and switches.

use super::*;

#[test]
fn a_short_name_is_understood_and_noted() {
    let settings = read(&[("EDGE_PORT", "9000"), ("SLUICE_BIND", "::1")]).unwrap();
    assert_eq!(
        (settings.edge_port, settings.bind.to_string()),
        (9000, "::1".into())
    );
    let note = "EDGE_PORT: the name is SLUICE_EDGE_PORT; the short name works too";
    assert_eq!(
        (settings.notes, settings.notices),
        (vec![note.to_owned()], vec![])
    );
}

#[test]
fn a_problem_names_the_variable_that_is_set() {
    assert!(problems(&[("EDGE_PORT", "x")])[0].starts_with("EDGE_PORT=\"x\": expected a port"));
    let other = problems(&[("TLS_CERT", "/dev/null")]);
    assert_eq!(other, ["SLUICE_TLS_KEY: must be set, as TLS_CERT is"]);
}

#[test]
fn two_names_of_a_setting_have_the_same_value() {
    let same = [("SLUICE_EDGE_PORT", "9000"), ("EDGE_PORT", "9000")];
    assert_eq!(read(&same).unwrap().edge_port, 9000);
    let different = [("SLUICE_EDGE_PORT", "9000"), ("EDGE_PORT", "9001")];
    assert_eq!(
        problems(&different),
        [
            "SLUICE_EDGE_PORT=\"9000\" and EDGE_PORT=\"9001\": expected one of the two names, or the same value in both"
        ]
    );
    let link = [
        ("SLUICE_EDGE_PORT", "9000"),
        ("EDGE_PORT", "tcp://10.0.0.1:80"),
    ];
    assert_eq!(read(&link).unwrap().edge_port, 9000);
    let secret = [
        ("SLUICE_PURGE_TOKEN", "hush-hush-hush-hush"),
        ("PURGE_TOKEN", "hush-hush-hush-shhh"),
    ];
    let problems = problems(&secret).join("\n");
    assert!(
        problems.starts_with("SLUICE_PURGE_TOKEN and PURGE_TOKEN: expected"),
        "{problems}"
    );
    assert!(!problems.contains("hush"), "{problems}");
}

#[test]
fn the_edges_parts_have_no_short_names() {
    let settings = read(&[("STATE", "/elsewhere"), ("ENVOY", "/elsewhere")]).unwrap();
    let locations = settings.locations;
    assert!(
        !locations.state.starts_with("/elsewhere") && !locations.envoy.starts_with("/elsewhere")
    );
}

#[test]
fn each_switch_has_the_same_spellings() {
    for (text, expected) in [
        ("on", true),
        ("TRUE", true),
        ("1", true),
        ("Off", false),
        ("0", false),
    ] {
        let settings = read(&[
            ("SLUICE_VIA", text),
            ("SLUICE_S3_CHECK", text),
            ("SLUICE_WATCH", text),
        ]);
        let settings = settings.unwrap();
        let switches = [settings.tells_via, settings.checks_bucket, settings.watches];
        assert_eq!(switches, [expected; 3], "{text}");
    }
    let usual = read(&[]).unwrap();
    assert_eq!(
        [usual.tells_via, usual.checks_bucket, usual.watches],
        [true, true, false]
    );
}
