// SPDX-License-Identifier: Apache-2.0
//! Waking: the end of a callback, at which effects are carried out and paused requests continue.

pub mod resumption;
mod turn;
