// SPDX-License-Identifier: Apache-2.0
//! A filter that lets each request go on in a later turn of its worker, and does nothing else.
//!
//! Envoy's cache filter does not survive an answer while it is still sending its request, as the answer of a dead VM
//! would be.

use crate::abi::{Filter, HeadersStatus};

/// Holds the request, and wakes it in a later turn.
pub fn hold(filter: Filter) -> HeadersStatus {
    filter.scheduler().commit();
    HeadersStatus::StopAllIterationAndWatermark
}
