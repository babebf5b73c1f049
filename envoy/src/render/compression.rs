// SPDX-License-Identifier: Apache-2.0
//! The values of Envoy's compressors, which compress responses on their way into the cache.

use minijinja::{Value, context};
use sluice_core::internal_headers::{COMPRESS_TYPED, COMPRESS_UNTYPED};
use sluice_core::policy::{CompressionPolicy, Policy};
use sluice_core::website::media_type::NONE;

use crate::origin::Origin;
use crate::settings::Settings;

/// The compressors that most policies need. All sites with such a policy share them, because a thousand sites with
/// separate compressors would make Envoy's start take many seconds.
#[derive(Clone, Debug)]
pub struct UsualCompression {
    policy: CompressionPolicy,
}

impl UsualCompression {
    /// The compressors of a policy without a section on compression.
    ///
    /// # Errors
    /// Never, because such a policy is valid.
    pub fn new() -> anyhow::Result<Self> {
        let policy = Policy::parse(br#"{"origin": {"kind": "http"}}"#)?;
        Ok(Self {
            policy: policy.compression,
        })
    }

    /// The compressors in the hop. Without the filter they are not needed.
    pub fn shared(&self, settings: &Settings) -> Vec<Value> {
        if !settings.filter {
            return Vec::new();
        }
        vec![self.typed(&self.policy), self.untyped(&self.policy)]
    }

    /// The compressors that a site's policy needs.
    pub fn of(&self, settings: &Settings, origin: &Origin, policy: &Policy) -> Vec<Value> {
        let policy = &policy.compression;
        if !(settings.filter && policy.enabled) {
            return Vec::new();
        }
        // The filter adds media types to the objects of buckets only.
        match origin {
            Origin::Bucket(_) => vec![self.typed(policy), self.untyped(policy)],
            Origin::Http(_) => vec![self.typed(policy)],
        }
    }

    fn typed(&self, policy: &CompressionPolicy) -> Value {
        compression(policy, self.is_met(policy), COMPRESS_TYPED, "", &[])
    }

    fn untyped(&self, policy: &CompressionPolicy) -> Value {
        let usual = self.is_met(policy);
        compression(policy, usual, COMPRESS_UNTYPED, "_untyped", &NONE)
    }

    /// Whether a policy's compression is the usual one.
    fn is_met(&self, policy: &CompressionPolicy) -> bool {
        let usual = &self.policy;
        (policy.min_bytes, &policy.content_types, &policy.codings)
            == (usual.min_bytes, &usual.content_types, &usual.codings)
    }
}

/// The compressors for the responses that the filter marks with the word `wanted`. They compress `more_types` and
/// the policy's types.
fn compression(
    policy: &CompressionPolicy,
    usual: bool,
    wanted: &str,
    suffix: &str,
    more_types: &[&str],
) -> Value {
    let types = policy.content_types.iter().map(String::as_str);
    let codings = policy.codings.iter().map(|coding| coding.token());
    context! {
        wanted => wanted,
        suffix => suffix,
        is_usual => usual,
        anchor => format!("compressors_{wanted}"),
        // Envoy's field has 32 bits, and a stored object is never larger.
        min_bytes => policy.min_bytes.min(u64::from(u32::MAX)),
        content_types => types.chain(more_types.iter().copied()).collect::<Vec<_>>(),
        codings => codings.collect::<Vec<_>>(),
    }
}
