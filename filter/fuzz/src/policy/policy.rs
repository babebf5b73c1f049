// SPDX-License-Identifier: Apache-2.0
//! Fuzzes policy documents. Each is refused with a message, or compiles.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_core::policy::Policy;

fuzz_target!(|document: &[u8]| {
    if let Err(error) = Policy::parse(document) {
        assert!(!error.to_string().is_empty());
    }
});
