// SPDX-License-Identifier: Apache-2.0
//! Where the filter has messages verified.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::verifier::{Verified, Verifier};
use crate::local_socket::{self, Answer, LocalSocket};

/// Strangers can be refused often; this is how often it is said.
const LOG_PERIOD: Duration = Duration::from_secs(1);

/// Verifies messages that come to a socket in `state`, until that is dropped.
///
/// # Errors
/// The socket cannot be bound.
pub fn serve(verifier: Verifier, state: &Path) -> io::Result<LocalSocket> {
    let log = Log::default();
    local_socket::serve("sns", state, move |body| answer(body, &verifier, &log))
}

/// 200 with the event of a notification, 204 where nothing is to be purged, else the reason.
fn answer(body: &[u8], verifier: &Verifier, log: &Log) -> Answer {
    match verifier.take(body, Timestamp::now()) {
        Ok(Verified::Notification(event)) => Answer {
            status: "200 OK",
            body: event,
        },
        Ok(Verified::Subscribed(topic)) => {
            crate::run::say(&format!("SNS: the subscription to {topic} is confirmed"));
            Answer::from("204 No Content")
        }
        Ok(Verified::Unsubscribed(topic)) => {
            crate::run::say(&format!("SNS: the subscription to {topic} has ended"));
            Answer::from("204 No Content")
        }
        Err(refusal) => {
            log.refused(&refusal.reason);
            let status = match refusal.status {
                400 => "400 Bad Request",
                403 => "403 Forbidden",
                _ => "503 Service Unavailable",
            };
            Answer {
                status,
                body: refusal.reason,
            }
        }
    }
}

/// Says why messages are refused, not too often.
#[derive(Default)]
struct Log {
    last: Mutex<Option<Instant>>,
}

impl Log {
    fn refused(&self, reason: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|at| at.elapsed() >= LOG_PERIOD) {
            *last = Some(Instant::now());
            crate::run::say(&format!("SNS: a message was refused: {reason}"));
        }
    }
}
