// SPDX-License-Identifier: Apache-2.0
//! The writing of the purge feed: by `sluice purge --feed`, which needs no edge, and by an edge for its callers.
//!
//! `place` finds the bucket of the feed in the settings, `way` reaches its object, and `writer` replaces the feed.
//! `command` is for the user. `server` takes the purges of an edge, and `gathering` lets those of one moment be one write.

mod command;
mod gathering;
mod place;
mod server;
#[cfg(test)]
mod tests;
mod way;
mod writer;

pub use command::write;
pub use place::FeedPlace;
pub use server::serve;
pub use way::EnvoyWay;
pub use writer::{FeedFailure, FeedWriter};
