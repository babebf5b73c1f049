// SPDX-License-Identifier: Apache-2.0
//! What is made of what was measured.

pub mod aim;
pub mod conclusions;
pub mod distribution;
pub mod sample;
