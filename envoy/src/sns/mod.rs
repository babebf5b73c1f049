// SPDX-License-Identifier: Apache-2.0
//! Amazon SNS: verifies the messages by which S3 reports changes in the bucket.
//!
//! The filter passes on the messages that arrive at the listener for purges, and acts only on messages that are
//! verified here. This module cannot purge. It sends requests to SNS only in the regions of the listed topics.
//! Their hosts are taken from the settings, never from a message.
//!
//! The path of a message: `server` receives it from the filter, `message` parses it, and `verifier` checks it with
//! the keys that `certificate` reads and `service` fetches.

mod certificate;
mod message;
mod refusal;
mod server;
mod service;
#[cfg(test)]
mod tests;
mod topic;
mod verifier;

pub use topic::Topic;
pub use verifier::Verifier;

use crate::origin::Endpoint;

/// The topics from which messages are accepted, and the way to SNS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sns {
    /// The topics; at least one.
    pub topics: Vec<Topic>,
    /// The HTTP proxy through which SNS is reached.
    pub proxy: Option<Endpoint>,
}
