// SPDX-License-Identifier: Apache-2.0
//! The standalone edge: its settings, Envoy's configuration, and the code that starts, watches and stops all
//! processes.
//!
//! Where do I change …
//!
//! | what | where |
//! |---|---|
//! | a setting: its name, default, meaning or check | `docs/settings.md` and `settings/` |
//! | the address of a bucket or an HTTP origin | `origin/` |
//! | the sites of one edge, and their file | `sites/` |
//! | the links of `sluice sign`, the keys of `sluice seal` | `sign.rs`, `seal.rs` |
//! | Envoy's configuration | `render/` and `templates/` |
//! | the policies that come with the edge | `policies/` and `settings/policy.rs` |
//! | what `sluice check` finds | `check/` |
//! | what a reload changes, and in which order | `reload/` |
//! | the order of start and stop, drain, signals | `run/` |
//! | the cache's folder, its format, what a restart keeps | `cache/folder/`, `cache/recovery/` |
//! | eviction, a full disk, a cache that kills Envoy | `cache/eviction/`, `cache/free_space/`, `cache/early_deaths.rs` |
//! | how sites share the cache | `cache/eviction/surplus.rs`, `cache/shares.rs` |
//! | what `sluice purge --feed` writes, and the feed of an edge that writes it | `purge_feed/` |
//! | the journal of purges | `cache/journal.rs` |
//! | the verification of messages of Amazon SNS | `sns/` |
//! | the demo site and its MinIO | `demo/` |
//! | calls to Envoy's admin interface, sockets for calls of the filter | `net/` |
//! | the control socket, and the commands that ask a running edge | `control/` |
//! | the metrics: their names and the server for scrapes | `metrics/` |
//! | child processes, threads, limits of the machine, notifications to systemd | `system/` |
//! | messages to the user | `log.rs` |
//!
//! A module uses only modules that follow it in this list: `check`, `run`, `reload`, `sign`, `seal`, `purge_feed`, `render`, `control`, `metrics`, `cache` and
//! `demo`, `settings`, `sites`, `sns`, `net`, `origin`, `system` and `log`.

pub mod cache;
pub mod check;
pub mod control;
pub mod demo;
pub mod log;
pub mod metrics;
mod net;
pub mod origin;
pub mod purge_feed;
mod reload;
pub mod render;
pub mod run;
pub mod seal;
pub mod settings;
pub mod sign;
pub mod sites;
pub mod sns;
pub mod system;
pub mod warm;
