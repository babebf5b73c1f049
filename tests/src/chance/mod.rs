// SPDX-License-Identifier: Apache-2.0
//! Randomness: numbers that follow from a seed, and the popularity of objects.

pub mod popularity;
pub mod rng;
