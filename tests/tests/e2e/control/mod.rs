// SPDX-License-Identifier: Apache-2.0
//! The commands that ask a running edge over its control socket.

mod contents;
mod questions;
mod shop;
mod socket;
