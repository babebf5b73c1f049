// SPDX-License-Identifier: Apache-2.0
//! The socket at which the filter has messages verified.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ureq::http::StatusCode;

use super::message::MessageKind;
use super::verifier::Verifier;
use crate::log::{say, warn};
use crate::net::local_socket::{self, Answer, LocalSocket};

/// At most one refusal is logged in this time, because any client can send messages.
const LOG_PERIOD: Duration = Duration::from_secs(1);

impl Verifier {
    /// Verifies messages for the filter on a new socket in `state`, until the socket is dropped.
    ///
    /// # Errors
    /// The socket cannot be bound.
    pub fn serve(self, state: &Path) -> io::Result<LocalSocket> {
        let log = RefusalLog::default();
        local_socket::serve("sns", state, move |call| answer(&call.body, &self, &log))
    }
}

/// 200 with the event of a notification, 204 for a message that purges nothing, or else the status and reason of
/// the refusal.
fn answer(body: &[u8], verifier: &Verifier, log: &RefusalLog) -> Answer {
    let message = match verifier.verify(body, Timestamp::now()) {
        Ok(message) => message,
        Err(refusal) => {
            log.note(&refusal.reason);
            return (refusal.status, refusal.reason);
        }
    };
    let topic = &message.topic_arn;
    match message.kind {
        MessageKind::Notification => return (StatusCode::OK, message.message),
        MessageKind::SubscriptionConfirmation => {
            say(&format!("SNS: the subscription to {topic} is confirmed"));
        }
        MessageKind::UnsubscribeConfirmation => {
            say(&format!("SNS: the subscription to {topic} has ended"));
        }
    }
    (StatusCode::NO_CONTENT, String::new())
}

/// Logs why messages are refused, at a bounded rate.
#[derive(Default)]
struct RefusalLog {
    last: Mutex<Option<Instant>>,
}

impl RefusalLog {
    fn note(&self, reason: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|at| at.elapsed() >= LOG_PERIOD) {
            *last = Some(Instant::now());
            warn(&format!("SNS: a message was refused: {reason}"));
        }
    }
}
