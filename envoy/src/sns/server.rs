// SPDX-License-Identifier: Apache-2.0
//! Where the filter has messages verified.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::verifier::{Verified, Verifier};
use crate::local_socket::{self, LocalSocket};

/// Messages that are verified at one time.
const THREADS: usize = 8;
/// Strangers can be refused often; this is how often it is said.
const LOG_PERIOD: Duration = Duration::from_secs(1);

/// Verifies messages that come to a socket in `state`, until that is dropped.
///
/// # Errors
/// The socket cannot be bound.
pub fn serve(verifier: Verifier, state: &Path) -> io::Result<LocalSocket> {
    let (listener, socket) = LocalSocket::bind("sns", state)?;
    let (listener, verifier) = (Arc::new(listener), Arc::new(verifier));
    let log = Arc::new(Log::default());
    for _ in 0..THREADS {
        let (listener, verifier, log) = (listener.clone(), verifier.clone(), log.clone());
        std::thread::spawn(move || accept(&listener, &verifier, &log));
    }
    Ok(socket)
}

fn accept(listener: &UnixListener, verifier: &Verifier, log: &Log) {
    for stream in listener.incoming().flatten() {
        // Envoy has given up; nobody is left to be told.
        let _ = answer(&stream, verifier, log);
    }
}

/// 200 with the event of a notification, 204 where nothing is to be purged, else the reason.
fn answer(stream: &UnixStream, verifier: &Verifier, log: &Log) -> io::Result<()> {
    let body = local_socket::read_call(stream)?;
    match verifier.take(&body, Timestamp::now()) {
        Ok(Verified::Notification(event)) => local_socket::answer(stream, "200 OK", &event),
        Ok(Verified::Subscribed(topic)) => {
            crate::run::say(&format!("SNS: the subscription to {topic} is confirmed"));
            local_socket::answer(stream, "204 No Content", "")
        }
        Ok(Verified::Unsubscribed(topic)) => {
            crate::run::say(&format!("SNS: the subscription to {topic} has ended"));
            local_socket::answer(stream, "204 No Content", "")
        }
        Err(refusal) => {
            log.refused(&refusal.reason);
            let status = match refusal.status {
                400 => "400 Bad Request",
                403 => "403 Forbidden",
                _ => "503 Service Unavailable",
            };
            local_socket::answer(stream, status, &refusal.reason)
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
