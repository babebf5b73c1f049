// SPDX-License-Identifier: Apache-2.0
//! Programs that ask.

pub mod h2load;
pub mod k6;
