// SPDX-License-Identifier: Apache-2.0
//! What the fuzz targets share: policies, parsed once.

use std::cell::OnceCell;

use sluice_core::policy::Policy;

/// The policy that `number` stands for among those of a target's `documents`, of which a target has one list.
#[allow(clippy::expect_used, clippy::indexing_slicing)]
pub fn policy(documents: &[&str], number: u8) -> &'static Policy {
    thread_local! {
        static PARSED: OnceCell<&'static [Policy]> = const { OnceCell::new() };
    }
    let parse = |document: &&str| Policy::parse(document.as_bytes()).expect("a policy");
    let all = || &*Vec::leak(documents.iter().map(parse).collect());
    let parsed = PARSED.with(|parsed| *parsed.get_or_init(all));
    &parsed[usize::from(number) % parsed.len()]
}
