// SPDX-License-Identifier: Apache-2.0
//! What the servers stand before.

pub mod application;
pub mod feed;
pub mod objects;
mod responder;

pub use responder::Responder;
