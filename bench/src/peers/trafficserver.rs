// SPDX-License-Identifier: Apache-2.0
//! Traffic Server, as it coalesces with few settings, see `peers/trafficserver`.

use crate::peers::Peer;
use crate::peers::conforming;
use crate::peers::packages::{missing, root};
use crate::peers::recipe::{File, Recipe};
use std::net::SocketAddr;

const RECORDS: File = (
    "records.config",
    include_str!("../../peers/trafficserver/records.config"),
);
const STORAGE: File = (
    "storage.config",
    include_str!("../../peers/trafficserver/storage.config"),
);
const SLICE: File = (
    "remap.config",
    include_str!("../../peers/trafficserver/slice.config"),
);

/// Its files differ from those for the conformance suite.
pub const COALESCING: Recipe = Recipe {
    files: &[
        RECORDS,
        STORAGE,
        conforming::IP_ALLOW,
        conforming::REMAP,
        conforming::RUNROOT,
    ],
    ..conforming::TRAFFIC_SERVER
};

const SLICING: Recipe = Recipe {
    files: &[
        RECORDS,
        STORAGE,
        conforming::IP_ALLOW,
        SLICE,
        conforming::RUNROOT,
    ],
    ..conforming::TRAFFIC_SERVER
};

/// Starts it with its slice plugin in front of `origin`; `None` if the packages do not have the plugin.
pub async fn start_slices(origin: SocketAddr) -> Option<Peer> {
    let plugins = root(SLICING.release).join("usr/lib/trafficserver/modules");
    for plugin in ["slice.so", "cache_range_requests.so"] {
        if !plugins.join(plugin).is_file() {
            missing(plugin);
            return None;
        }
    }
    SLICING.start(origin).await
}
