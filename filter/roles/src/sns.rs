// SPDX-License-Identifier: Apache-2.0
//! Messages of Amazon SNS. The entry point verifies them, because certificates and RSA do not belong on the data
//! path.

use std::time::Duration;

use sluice_core::metrics::Metric;

use crate::entry_point;
use sluice_host::{self as host, Host, Map};

/// The cluster of the entry point's verifier.
const CLUSTER: &str = "sns";
/// The limit of the verifier's answer. SNS itself waits for 15 seconds.
const TIMEOUT: Duration = Duration::from_secs(12);
/// The error if the verifier does not answer.
const SILENT: &str = "the message could not be verified now";

/// The entry point's verdict on a message.
#[derive(Debug)]
pub enum Verification {
    /// A notification of a listed topic.
    Notification {
        /// The ARN of the topic.
        topic: String,
        /// The S3 event.
        event: Vec<u8>,
    },
    /// The confirmed start or end of the subscription to a listed topic.
    Confirmation,
    /// A message without effect.
    Refused {
        /// The status for the sender.
        status: u16,
        /// The reason.
        error: String,
    },
}

impl Verification {
    /// The metric that counts the message.
    pub const fn metric(&self) -> Metric {
        match self {
            Self::Notification { .. } => Metric::SnsNotifications,
            Self::Confirmation => Metric::SnsConfirmations,
            Self::Refused { status: 503, .. } => Metric::SnsUnverified,
            Self::Refused { .. } => Metric::SnsRefused,
        }
    }
}

/// Asks the entry point. Its answer is delivered to the context that is running now.
///
/// # Errors
/// Envoy refused to send the question.
pub fn ask(host: &dyn Host, message: &[u8]) -> host::Result<()> {
    entry_point::post(host, CLUSTER, message, TIMEOUT).map(drop)
}

/// Reads the ARN of the topic, and the event after the line end.
fn notification(answer: &[u8]) -> Verification {
    let end = answer.iter().position(|byte| *byte == b'\n');
    let (topic, event) = answer.split_at(end.unwrap_or(0));
    Verification::Notification {
        topic: String::from_utf8_lossy(topic).into_owned(),
        event: event.get(1..).unwrap_or_default().to_vec(),
    }
}

/// Reads the answer, which has a body of `size` bytes. An answer made by Envoy has status 503 or 504.
pub fn verification(host: &dyn Host, answered: bool, size: usize) -> Verification {
    let status = answered
        .then(|| host.header_number(Map::CallResponse, ":status").ok()?)
        .flatten()
        .and_then(|status| u16::try_from(status).ok());
    match (status, host.call_body(size)) {
        (Some(200), Ok(answer)) => notification(&answer),
        (Some(204), _) => Verification::Confirmation,
        (Some(status @ (400..=499 | 503)), Ok(error)) => Verification::Refused {
            status,
            error: String::from_utf8_lossy(&error).into_owned(),
        },
        _ => Verification::Refused {
            status: 503,
            error: SILENT.to_owned(),
        },
    }
}
