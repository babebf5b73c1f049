// SPDX-License-Identifier: Apache-2.0
//! The origins behind the servers.

pub mod application;
pub mod archive;
pub mod feed;
mod responder;

pub use responder::Responder;
