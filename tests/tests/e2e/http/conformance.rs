// SPDX-License-Identifier: Apache-2.0
//! The public conformance suite for HTTP caches, with the built-in policy for an HTTP origin. `bench/CONFORMANCE.md` has
//! each test that does not pass, and why.

use sluice_tests::conformance::{self, Outcomes};
use sluice_tests::edge::Builder;
use sluice_tests::edge::store::Medium;
use sluice_tests::machine::ports::free_port;
use sluice_tests::machine::tool::repository;
use std::collections::BTreeSet;
use std::fs;

/// The built-in policy, for clients whose `Cache-Control` counts: many tests send one.
fn policy() -> String {
    let text = fs::read_to_string(repository().join("envoy/policies/http.yaml")).unwrap();
    let obeying = text.replace("\nrequest:\n", "\nrequest:\n  cache_control: obey\n");
    assert_ne!(obeying, text, "the policy has no section `request`");
    obeying
}

/// The tests of which the page says that they do not pass.
fn listed() -> BTreeSet<String> {
    let page = fs::read_to_string(repository().join("bench/CONFORMANCE.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.filter_map(|row| row.split_once("` |"));
    names.map(|(name, _)| name.to_owned()).collect()
}

async fn outcomes(medium: Medium) -> Outcomes {
    let origin = free_port();
    let edge = Builder::new()
        .medium(medium)
        .policy(&policy())
        .env("ORIGIN", format!("http://127.0.0.1:{origin}"))
        .env("ACCESS_LOG", "off")
        // The suite's origin hangs up on purpose, and sends framing that nobody may send.
        .allow_log("no answer from the origin")
        .start()
        .await;
    conformance::run(edge.address(), origin).await
}

fn assert_as_listed(outcomes: &Outcomes) {
    for kind in ["required", "optimal", "check"] {
        let (passed, all) = conformance::score(outcomes, kind);
        println!("{kind}: {passed} of {all}");
    }
    let failed = outcomes.iter().filter(|(_, outcome)| !outcome.is_right());
    let listed = listed();
    let unlisted = failed.clone().filter(|(name, _)| !listed.contains(*name));
    let unlisted: Vec<_> = unlisted
        .map(|(name, outcome)| {
            format!(
                "{name}: {}: {} ({})",
                outcome.mark, outcome.name, outcome.detail
            )
        })
        .collect();
    assert!(
        unlisted.is_empty(),
        "these do not pass, and bench/CONFORMANCE.md does not say why:\n{}",
        unlisted.join("\n")
    );
    let failed: BTreeSet<_> = failed.map(|(name, _)| name).collect();
    let passed: Vec<_> = listed
        .iter()
        .filter(|name| !failed.contains(name))
        .collect();
    assert!(
        passed.is_empty(),
        "these pass, so bench/CONFORMANCE.md is to lose them: {passed:?}"
    );
}

#[tokio::test]
async fn what_the_public_suite_finds_is_what_the_page_says_with_a_cache_on_disk() {
    assert_as_listed(&outcomes(Medium::Disk).await);
}
