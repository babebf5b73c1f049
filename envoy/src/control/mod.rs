// SPDX-License-Identifier: Apache-2.0
//! The control socket: answers the questions of the operator's commands about a running edge.
//!
//! - `server`: the socket, and its paths
//! - `filter`: the questions to the filter, whose workers each know a part
//! - `answers`: the answers, joined from the parts of the workers and from the facts of the entry point
//! - `commands`: the commands that ask, one in each file, and their texts
//! - `query`: the query language of `sluice log`
//! - `text`: tables, sizes and times for people
//!
//! A further question is a file in `answers`, a path in `server` and, for a command, a file in `commands`. URLs of
//! clients appear on this socket only, and only the user of the edge can open the socket. Neither credentials nor, unless
//! a question asks for them, queries appear in any answer.

mod answers;
pub mod commands;
mod failure;
mod filter;
mod query;
mod server;
mod text;

pub use filter::Filter;
pub use server::ControlServer;
