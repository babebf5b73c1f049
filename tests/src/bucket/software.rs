// SPDX-License-Identifier: Apache-2.0
//! The S3 servers that claims about buckets are tested with.

use super::role::Role;
use super::server::S3Server;
use super::{Bucket, REGION, minio, versitygw};

/// A program that serves S3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Software {
    /// MinIO.
    Minio,
    /// VersityGW in front of a folder.
    VersityGw,
}

impl Software {
    /// Creates a private bucket in a server that all tests share.
    pub async fn bucket(self) -> Bucket {
        let server = match self {
            Self::Minio => minio::shared().await,
            Self::VersityGw => versitygw::shared().await,
        };
        server.bucket().await
    }

    /// A server that reads a bucket's name from the host, as a label of this domain.
    pub async fn by_host(self, domain: &str) -> &'static S3Server {
        match self {
            Self::Minio => minio::own(&[("MINIO_DOMAIN", domain)]).await,
            Self::VersityGw => versitygw::own(&[("VGW_VIRTUAL_DOMAIN", domain)]).await,
        }
    }

    /// A server that accepts signatures for [`REGION`] only.
    pub async fn of_one_region(self) -> &'static S3Server {
        match self {
            Self::Minio => minio::own(&[("MINIO_SITE_REGION", REGION)]).await,
            Self::VersityGw => versitygw::shared().await,
        }
    }

    /// Credentials that may read the objects of that bucket, but not list it.
    pub async fn not_listing(self, bucket: &Bucket) -> Role {
        match self {
            Self::Minio => Role::not_listing(bucket).await,
            Self::VersityGw => versitygw::not_listing(bucket).await,
        }
    }
}
