// SPDX-License-Identifier: Apache-2.0
//! Load generators.

pub mod h2load;
pub mod k6;
