// SPDX-License-Identifier: Apache-2.0
//! Messages of Amazon SNS, by which S3 says what has changed: what they are, and whether they are SNS's own.
//!
//! The filter hands over what comes to the listener for purges, and acts only on what is found good here. Nothing here
//! can purge. What is asked of the network is asked of the regions of the listed topics only: the host comes from the
//! settings, never from a message.

mod certificate;
mod message;
mod server;
mod service;
#[cfg(test)]
mod tests;
mod topic;
mod verifier;

use crate::origin::Endpoint;

pub use server::serve;
pub use service::{Https, NoService, Service};
pub use topic::Topic;
pub use verifier::{Refusal, Verified, Verifier};

/// From whom messages are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sns {
    /// The topics; at least one.
    pub topics: Vec<Topic>,
    /// The HTTP proxy through which SNS is reached.
    pub proxy: Option<Endpoint>,
}
