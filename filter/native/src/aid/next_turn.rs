// SPDX-License-Identifier: Apache-2.0
//! A filter that only resumes each request in a later turn of its worker.
//!
//! Envoy's cache filter crashes on an answer that arrives while the filter is still sending its request. The answer
//! of a dead VM would be such an answer.

use crate::abi::{Filter, HeadersStatus};

/// Pauses the request, and wakes it in a later turn.
pub fn hold(filter: Filter) -> HeadersStatus {
    filter.scheduler().commit();
    HeadersStatus::StopAllIterationAndWatermark
}
