// SPDX-License-Identifier: Apache-2.0
//! Slices as an operator sees them: their counters, bounds, reloads, shares of the cache, and a failing origin.

mod connections;
mod counts;
mod outage;
mod reload;
mod shares;
