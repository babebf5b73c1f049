// SPDX-License-Identifier: Apache-2.0
//! One request to the origin for all clients that want the same object at the same time.

mod any_store;
mod faults;
mod fills;
mod interleavings;
mod rules;
mod unread_fills;
mod variants;
