// SPDX-License-Identifier: Apache-2.0
//! Requests through all roles.

mod access;
mod claims;
mod declared;
mod feed_writes;
mod host;
mod interleavings;
mod questions;
mod sites;
mod store_names;
mod validation;
