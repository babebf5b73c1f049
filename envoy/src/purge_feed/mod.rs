// SPDX-License-Identifier: Apache-2.0
//! The writing of the purge feed: `sluice purge --feed`, which needs no edge.
//!
//! `place` finds the bucket of the feed in the settings, `writer` replaces the feed, and `command` is for the user.

mod command;
mod place;
mod writer;

pub use command::write;
pub use place::FeedPlace;
pub use writer::{FeedFailure, FeedWriter};
