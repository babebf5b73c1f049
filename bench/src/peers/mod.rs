// SPDX-License-Identifier: Apache-2.0
//! Other projects' servers.

pub mod haproxy;
pub mod nginx;
pub mod peer;
pub mod varnish;
