// SPDX-License-Identifier: Apache-2.0
//! Small objects that each worker serves from its own memory.

mod same_as_stored;
mod shared;
mod tier;
