// SPDX-License-Identifier: Apache-2.0
//! The state of the edge and the totals of its sites at one moment.

use serde::{Deserialize, Serialize};

use crate::metrics::{EdgeState, EdgeTotals};

/// A reading of the edge. Two readings give the rates of the time between them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct EdgeReading {
    /// The build and the configuration.
    pub state: EdgeState,
    /// The totals.
    pub totals: EdgeTotals,
}
