// SPDX-License-Identifier: Apache-2.0
//! The public conformance suite for HTTP caches, with the built-in policy for an HTTP origin. `bench/CONFORMANCE.md`
//! has each test that does not pass, and why.

use sluice_tests::conformance::{Between, Cut, Outcomes, Suite, listed, score};

fn assert_as_listed(outcomes: &Outcomes, cut: Cut) {
    for kind in ["required", "optimal", "check"] {
        let (passed, all) = score(outcomes, kind);
        println!("{kind}: {passed} of {all}");
    }
    let listed = listed(cut);
    let failed = outcomes.iter().filter(|(_, outcome)| !outcome.is_right());
    let unlisted = failed.filter(|(name, _)| !listed.contains_key(*name));
    let unlisted = unlisted.map(|(name, outcome)| {
        format!(
            "{name}: {}: {} ({})",
            outcome.mark, outcome.name, outcome.detail
        )
    });
    let unlisted: Vec<_> = unlisted.collect();
    assert!(
        unlisted.is_empty(),
        "these do not pass, and bench/CONFORMANCE.md does not say why:\n{}",
        unlisted.join("\n")
    );
    let fails = |name: &String| {
        outcomes
            .get(name)
            .is_some_and(|outcome| !outcome.is_right())
    };
    let passed: Vec<_> = listed.keys().filter(|name| !fails(name)).collect();
    assert!(
        passed.is_empty(),
        "these pass or are no tests, so bench/CONFORMANCE.md is to lose them: {passed:?}"
    );
}

#[tokio::test]
async fn what_the_public_suite_finds_is_what_the_page_says_with_a_cache_on_disk() {
    let suite = Suite::start().await;
    let edge = suite.edge().start().await;
    let outcomes = suite
        .run(edge.address(), Between::Nothing, async || {})
        .await;
    assert_as_listed(&outcomes, suite.cut());
}
