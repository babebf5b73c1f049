// SPDX-License-Identifier: Apache-2.0
//! Private buckets: the real MinIO, behind a proxy that counts.

pub mod minio;
pub mod proxy;
pub mod role;
