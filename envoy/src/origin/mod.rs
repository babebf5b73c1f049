// SPDX-License-Identifier: Apache-2.0
//! The origin, which is a bucket or any HTTP server.

mod bucket;
mod endpoint;

use std::fmt;

use serde_json::{Value, json};

pub use bucket::{Addressing, Bucket, BucketName, is_region};
pub use endpoint::Endpoint;

/// The server behind the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An S3-compatible bucket, reached with signed requests.
    Bucket(Bucket),
    /// Any HTTP server.
    Http(Endpoint),
}

impl Origin {
    /// The server that Envoy connects to.
    pub fn endpoint(&self) -> &Endpoint {
        match self {
            Self::Bucket(bucket) => &bucket.endpoint,
            Self::Http(endpoint) => endpoint,
        }
    }

    /// The section `origin` of the policy's document.
    pub fn policy_section(&self) -> Value {
        match self {
            Self::Bucket(bucket) => json!({
                "kind": "bucket",
                "bucket": bucket.name,
                "prefix": bucket.prefix,
                "addressing": bucket.addressing,
                "authority": bucket.endpoint.authority(),
            }),
            Self::Http(_) => json!({"kind": "http"}),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bucket(bucket) => {
                let slash = if bucket.prefix.is_empty() { "" } else { "/" };
                write!(
                    out,
                    "s3://{}{slash}{} at {}",
                    bucket.name, bucket.prefix, bucket.endpoint
                )
            }
            Self::Http(endpoint) => endpoint.fmt(out),
        }
    }
}
