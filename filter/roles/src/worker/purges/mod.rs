// SPDX-License-Identifier: Apache-2.0
//! Purges that this worker carries out, their way to the purge feed and from it, and events of buckets that purge nothing.

mod feed_lines;
pub mod feed_reader;
pub mod feed_writes;
pub mod ignored_events;
pub mod purge_calls;
