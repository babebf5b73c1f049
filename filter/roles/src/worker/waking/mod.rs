// SPDX-License-Identifier: Apache-2.0
//! Waking: how a paused request continues or is answered, in a turn of the root context.

pub mod coalescing;
mod replies;
pub mod resumption;
mod turn;
pub(in crate::worker) mod wakeups;
