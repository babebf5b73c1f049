// SPDX-License-Identifier: Apache-2.0
//! One edge with many sites: each serves what is its own, and nothing of another.

mod isolation;
mod twenty;
mod world;
