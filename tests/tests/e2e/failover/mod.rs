// SPDX-License-Identifier: Apache-2.0
//! A second origin answers the requests that the first one fails, and only those.

mod buckets;
mod failures;
mod hedging;
mod missing;
mod requests;
mod returns;
mod servers;
mod slices;
mod stored;
mod world;
