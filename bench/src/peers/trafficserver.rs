// SPDX-License-Identifier: Apache-2.0
//! Traffic Server, as it coalesces by itself, see `peers/trafficserver`.

use crate::peers::conforming;
use crate::peers::recipe::Recipe;

/// In files it differs from the one that the conformance suite asks.
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
