// SPDX-License-Identifier: Apache-2.0
//! The values of Envoy's compressors, which compress responses on their way into the cache.

use minijinja::{Value, context};
use sluice_core::link::{COMPRESS_TYPED, COMPRESS_UNTYPED};
use sluice_core::policy::{CompressionPolicy, Policy};
use sluice_core::website::media_type::NONE;

use crate::origin::Origin;
use crate::settings::Settings;

/// The compressors that the policy needs. Without the filter nothing asks for them.
pub fn compressions(settings: &Settings, origin: &Origin, policy: &Policy) -> Vec<Value> {
    let policy = &policy.compression;
    if !(settings.filter && policy.enabled) {
        return Vec::new();
    }
    let typed = compression(policy, COMPRESS_TYPED, &[]);
    // The filter adds media types to the objects of buckets only.
    match origin {
        Origin::Bucket(_) => {
            let untyped = compression(policy, COMPRESS_UNTYPED, &NONE);
            vec![typed, untyped]
        }
        Origin::Http(_) => vec![typed],
    }
}

/// The compressors for the responses that the filter marks with the word `wanted`. They have `more_types` beside those
/// of the policy.
fn compression(policy: &CompressionPolicy, wanted: &str, more_types: &[&str]) -> Value {
    let types = policy.content_types.iter().map(String::as_str);
    let codings = policy.codings.iter().map(|coding| coding.token());
    context! {
        wanted => wanted,
        anchor => format!("compressors_{wanted}"),
        // Envoy's field has 32 bits, and no stored object is larger.
        min_bytes => policy.min_bytes.min(u64::from(u32::MAX)),
        content_types => types.chain(more_types.iter().copied()).collect::<Vec<_>>(),
        codings => codings.collect::<Vec<_>>(),
    }
}
