// SPDX-License-Identifier: Apache-2.0
//! The values of Envoy's compressors, which compress responses on their way into the cache.

use serde::Serialize;
use sluice_core::http::accept_encoding::Coding;
use sluice_core::link::{COMPRESS_TYPED, COMPRESS_UNTYPED};
use sluice_core::policy::CompressionPolicy;
use sluice_core::policy::Policy;
use sluice_core::site::media_type::NONE;

use crate::origin::Origin;
use crate::settings::Settings;

/// The compressors for the responses that the filter marks with one word.
#[derive(Serialize)]
pub struct Compression {
    wanted: &'static str,
    min_bytes: u64,
    content_types: Vec<String>,
    compressors: Vec<Compressor>,
}

/// One of Envoy's compressors.
#[derive(Serialize)]
struct Compressor {
    name: String,
    coding: &'static str,
}

impl Compression {
    fn new(policy: &CompressionPolicy, wanted: &'static str, suffix: &str) -> Self {
        let compressor = |coding: &Coding| Compressor {
            name: format!("compress_{}{suffix}", coding.token()),
            coding: coding.token(),
        };
        Self {
            wanted,
            // Envoy's field has 32 bits, and no stored object is larger.
            min_bytes: policy.min_bytes.min(u64::from(u32::MAX)),
            content_types: policy.content_types.clone(),
            compressors: policy.codings.iter().map(compressor).collect(),
        }
    }
}

/// The compressors that the policy needs. Without the filter nothing asks for them.
pub fn compressions(settings: &Settings, origin: &Origin, policy: &Policy) -> Vec<Compression> {
    if !(settings.filter && policy.compression.enabled) {
        return Vec::new();
    }
    let typed = Compression::new(&policy.compression, COMPRESS_TYPED, "");
    let mut untyped = Compression::new(&policy.compression, COMPRESS_UNTYPED, "_untyped");
    untyped.content_types.extend(NONE.map(str::to_owned));
    // The filter adds media types to the objects of buckets only.
    match origin {
        Origin::Bucket(_) => vec![typed, untyped],
        Origin::Http(_) => vec![typed],
    }
}
