// SPDX-License-Identifier: Apache-2.0
//! What follows from chance: numbers of a seed, and how popular objects are.

pub mod popularity;
pub mod rng;
