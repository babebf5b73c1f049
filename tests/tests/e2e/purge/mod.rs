// SPDX-License-Identifier: Apache-2.0
//! Purge calls, notifications of S3 and SNS, soft purges, and invalidation by unsafe methods.

mod calls;
mod feed;
mod fills;
mod replicas;
mod restart;
mod s3;
mod sns;
mod soft;
mod unsafe_methods;
