// SPDX-License-Identifier: Apache-2.0
//! A filter that lets each request go on in a later turn of its worker, and does nothing else. It needs no worker of the
//! roles', so it also stands before ORIGIN where that is in a VM.
//!
//! Envoy's cache filter does not survive an answer while it is still sending its request, as the answer of a dead VM
//! would be.

use crate::abi::HeadersStatus;
use crate::stream::Stream;

/// Holds the request, and wakes it in a later turn.
pub fn hold(stream: &Stream) -> HeadersStatus {
    stream.filter.scheduler().commit();
    HeadersStatus::StopAllIterationAndWatermark
}

/// That turn has come.
pub fn go_on(stream: &Stream) {
    stream.filter.continue_decoding();
}
