// SPDX-License-Identifier: Apache-2.0
//! Code that the fuzz targets share: policies that are parsed once.

use std::cell::OnceCell;

use sluice_core::policy::Policy;

/// Returns policy `number` of a target's `documents`. A target has one list of documents.
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
