// SPDX-License-Identifier: Apache-2.0
//! What the fuzz targets share: policies, parsed once.

use std::sync::OnceLock;

use sluice_core::policy::Policy;

/// The policy that `number` stands for among those of a target's `documents`, of which a target has one list.
#[allow(clippy::expect_used, clippy::indexing_slicing)]
pub fn policy(documents: &[&str], number: u8) -> &'static Policy {
    static PARSED: OnceLock<Vec<Policy>> = OnceLock::new();
    let parse = |document: &&str| Policy::parse(document.as_bytes()).expect("a policy");
    let parsed = PARSED.get_or_init(|| documents.iter().map(parse).collect());
    &parsed[usize::from(number) % parsed.len()]
}
