// SPDX-License-Identifier: Apache-2.0
//! All requests get the right response in any order of events, with purges among them.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::cases;
use crate::support::document;
use crate::support::steps::{Step, anything_and_purges, ttl};
use crate::support::world::World;

/// Policies with and without a hot tier, and with and without a window for stale responses.
fn policy() -> impl Strategy<Value = String> {
    let hot = prop_oneof![Just(0), Just(10_000)];
    let window = prop_oneof![Just("0s"), Just("60s")];
    (hot, window).prop_map(|(hot, window)| {
        document(&format!(
            r#""hot": {{"max_bytes": {hot}}}, "cache": {{"stale_while_revalidate": "{window}"}}"#
        ))
    })
}

fn all_get_what_they_ask_for(policy: &str, workers: usize, ttl: u64, steps: &[Step]) {
    let mut world = World::new(policy, workers);
    world.host.ttl = ttl;
    world.prompt = true;
    world.run(steps);
    world.finish(20_000);
    for purge in &world.purges {
        purge.check(&world.host);
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn all_get_what_they_ask_for_and_nothing_that_was_purged(
        policy in policy(),
        workers in 1..=3_usize,
        ttl in ttl(),
        steps in vec(anything_and_purges(), 0..80),
    ) {
        all_get_what_they_ask_for(&policy, workers, ttl, &steps);
    }
}

/// The policy without a hot tier and without a window for stale responses.
fn plain_policy() -> String {
    document(r#""hot": {"max_bytes": 0}, "cache": {"stale_while_revalidate": "0s"}"#)
}

#[test]
fn a_fill_whose_clients_leave_before_its_call_is_sent_keeps_no_lease() {
    let steps = [
        Step::Range { worker: 0, key: 0 },
        Step::HoldTurns { hold: true },
        Step::Abort { client: 0 },
        Step::Conditional { worker: 0, key: 0 },
        Step::Abort { client: 0 },
    ];
    all_get_what_they_ask_for(&plain_policy(), 3, 3_600, &steps);
}

proptest! {
    #![proptest_config(cases(20_000))]

    #[test]
    #[ignore = "takes minutes"]
    fn soak(
        policy in policy(),
        workers in 1..=4_usize,
        ttl in ttl(),
        steps in vec(anything_and_purges(), 0..200),
    ) {
        all_get_what_they_ask_for(&policy, workers, ttl, &steps);
    }
}
