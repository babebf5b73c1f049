// SPDX-License-Identifier: Apache-2.0
//! Traffic Server, as it coalesces with few settings, see `peers/trafficserver`.

use crate::peers::conforming;
use crate::peers::recipe::Recipe;

/// Its files differ from those for the conformance suite.
pub const COALESCING: Recipe = Recipe {
    files: &[
        (
            "records.config",
            include_str!("../../peers/trafficserver/records.config"),
        ),
        (
            "storage.config",
            include_str!("../../peers/trafficserver/storage.config"),
        ),
        conforming::IP_ALLOW,
        conforming::REMAP,
        conforming::RUNROOT,
    ],
    ..conforming::TRAFFIC_SERVER
};
