// SPDX-License-Identifier: Apache-2.0
//! A response that the slicer puts together.

use sluice_core::slices::assembly::Assembly;

use crate::HeaderMap;

/// Response that the slicer puts together.
#[derive(Debug)]
pub(crate) struct Slicing {
    /// State of the slicer.
    pub assembly: Assembly,
    /// Request as EDGE has sent it to the slicer.
    pub request: HeaderMap,
}
