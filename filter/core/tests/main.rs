// SPDX-License-Identifier: Apache-2.0
//! The tests of the pure logic, with a module for each folder of the logic. The tests are one binary, which is linked
//! once.

mod access;
mod coalescing;
mod freshness;
mod hot;
mod http;
mod key;
mod policy;
mod purge;
mod sites;
mod slices;
mod support;
mod website;
mod workers;
