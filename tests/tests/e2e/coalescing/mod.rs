// SPDX-License-Identifier: Apache-2.0
//! One request to the origin for all clients that want the same object at the same time.

mod background_fills;
mod bounded_waiting;
mod client_aborts;
mod errors;
mod leader_vanishes;
mod stampede;
mod uncacheable;
mod unread_fills;
