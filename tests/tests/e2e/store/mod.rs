// SPDX-License-Identifier: Apache-2.0
//! Envoy's store of files: its bound, damage, a full disk, slow readers, and a run with all of these at once.

mod damage;
mod disk_full;
mod envoy_cache_v2;
mod eviction;
mod header_updates;
mod names;
mod restart;
mod slow_readers;
mod torture;
