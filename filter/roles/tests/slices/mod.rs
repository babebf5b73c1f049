// SPDX-License-Identifier: Apache-2.0
//! Objects that are larger than the largest stored object, in slices.

mod clients;
mod connections;
mod counts;
mod faults;
mod index;
mod large_urls;
mod versions;
mod world;
