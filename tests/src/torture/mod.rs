// SPDX-License-Identifier: Apache-2.0
//! Torture: an edge between an origin whose every byte says which object, version and offset it is of, and which fails
//! all the time, and clients that check all that they get, and leave; disturbed by purges, workers that stand still,
//! and the end of the edge.

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
pub mod fetches;
pub mod judge;
pub mod ledger;
pub mod object;
pub mod origin;
pub mod overlap;
pub mod purges;
pub mod run;
pub mod spans;
pub mod world;
