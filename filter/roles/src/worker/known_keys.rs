// SPDX-License-Identifier: Apache-2.0
//! What a worker knows of keys, beside the coalescer's hints.

use sluice_core::coalescing::varying::Varying;
use sluice_core::hot::HotTier;
use sluice_core::policy::Policy;
use sluice_core::store::body_lengths::BodyLengths;

/// What a worker knows of keys, by their hashes.
#[derive(Debug)]
pub struct KnownKeys {
    /// The lengths of stored bodies that no header tells.
    pub body_lengths: BodyLengths,
    /// The request headers that the responses of a URL vary with.
    pub varying: Varying,
    /// The hot tier.
    pub hot: HotTier,
}

impl KnownKeys {
    /// Knows nothing yet.
    pub fn new(policy: &Policy) -> Self {
        Self {
            body_lengths: BodyLengths::new(policy.limits.hints),
            varying: Varying::new(policy.limits.varying_urls),
            hot: HotTier::new(policy.hot),
        }
    }

    /// Keeps to the bounds of a new policy.
    pub fn keep_to(&mut self, policy: &Policy) {
        self.body_lengths.set_capacity(policy.limits.hints);
        self.varying.set_capacity(policy.limits.varying_urls);
    }
}
