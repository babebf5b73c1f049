// SPDX-License-Identifier: Apache-2.0
//! Two scripted origins, and an edge in front of both.

use sluice_tests::edge::{Builder, Edge};
use sluice_tests::origin::{Origin, Reply};

/// The access key's ID for the second bucket.
pub const SECOND_KEY: &str = "AKIDSECOND";

/// A first and a second origin, which answer every path with their names.
pub struct Pair {
    pub first: Origin,
    pub second: Origin,
}

impl Pair {
    pub async fn start() -> Self {
        let (first, second) = tokio::join!(Origin::start().ready(), Origin::start().ready());
        first.on("*", named("first"));
        second.on("*", named("second"));
        Self { first, second }
    }

    /// An edge with the buckets `site` and, below the prefix `copy`, `other`.
    pub fn buckets(&self) -> Builder {
        Edge::scripted_bucket(&self.first)
            .env("SLUICE_FAILOVER_ORIGIN", "s3://other/copy")
            .env("SLUICE_FAILOVER_ENDPOINT", self.second.url())
            .env("SLUICE_FAILOVER_REGION", "eu-west-1")
            .env("SLUICE_FAILOVER_ACCESS_KEY_ID", SECOND_KEY)
            .env("SLUICE_FAILOVER_SECRET_ACCESS_KEY", "second-secret-value")
    }

    /// An edge with two HTTP servers.
    pub fn servers(&self) -> Builder {
        Edge::http(&self.first).env("SLUICE_FAILOVER_ORIGIN", self.second.url())
    }

    /// The number of requests for a path of a client that the second bucket has received.
    pub fn asked_second_bucket(&self, path: &str) -> usize {
        self.second.count(&format!("/other/copy{path}"))
    }
}

/// A response of the origin with this name.
pub fn named(name: &str) -> Reply {
    Reply::text(name).etag(name).max_age(3_600)
}
