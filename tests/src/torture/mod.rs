// SPDX-License-Identifier: Apache-2.0
//! Torture: an edge between an origin and clients. Each byte of the origin identifies its object, version and offset,
//! and the origin fails all the time. The clients check each byte that they receive, and disconnect. Purges, workers
//! that stand still, and the end of the edge disturb the run.

pub mod adornment;
pub mod answer;
pub mod ask;
pub mod client;
pub mod clock;
pub mod content;
pub mod damage;
pub mod departures;
pub mod disturbance;
pub mod fault;
pub mod feed;
pub mod feed_purges;
pub mod fetches;
pub mod files;
pub mod fleet;
pub mod generations;
pub mod judge;
pub mod ledger;
pub mod life;
pub mod object;
pub mod origin;
pub mod outages;
pub mod overlap;
pub mod pass;
pub mod peers;
pub mod plan;
pub mod purges;
pub mod reloads;
pub mod run;
pub mod skew;
pub mod spans;
pub mod world;
