// SPDX-License-Identifier: Apache-2.0
//! Amazon SNS: verifies the messages by which S3 reports changes in the bucket.
//!
//! The filter hands over the messages that arrive at the listener for purges, and acts only on those that are verified
//! here. Nothing here can purge. Requests to SNS go only to the regions of the listed topics: their hosts come from the
//! settings, never from a message.
//!
//! The way of a message: `server` takes it from the filter, `message` parses it, `verifier` judges it with the keys
//! that `certificate` reads and `service` fetches.

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

/// The topics from which messages are taken, and the way to SNS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sns {
    /// The topics; at least one.
    pub topics: Vec<Topic>,
    /// The HTTP proxy through which SNS is reached.
    pub proxy: Option<Endpoint>,
}
