// SPDX-License-Identifier: Apache-2.0
//! Threads that work beside Envoy, and end before what they work on goes.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A thread that is told to end when this is dropped, and waited for.
#[derive(Debug)]
pub struct JoiningThread {
    thread: Option<JoinHandle<()>>,
    /// Tells the thread to end, by being dropped.
    running: Option<Sender<()>>,
}

/// By which the thread knows that it is to end.
#[derive(Debug)]
pub struct StopToken {
    ended: Receiver<()>,
}

impl JoiningThread {
    /// Does `work`, which returns soon after its token says so.
    ///
    /// # Errors
    /// There can be no more threads.
    pub fn start(name: &str, work: impl FnOnce(StopToken) + Send + 'static) -> io::Result<Self> {
        let (running, ended) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(StopToken { ended }))?;
        Ok(Self {
            thread: Some(thread),
            running: Some(running),
        })
    }
}

impl Drop for JoiningThread {
    fn drop(&mut self) {
        self.running.take();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so, and has nothing more to say.
            let _ = thread.join();
        }
    }
}

impl StopToken {
    /// Waits; `false`, and at once, when the thread is to end.
    pub fn rest(&self, time: Duration) -> bool {
        self.ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn a_thread_works_until_it_is_dropped_and_has_ended_then() {
        let rounds = Arc::new(AtomicU32::new(0));
        let worked = Arc::clone(&rounds);
        let (told, third) = mpsc::channel();
        let thread = JoiningThread::start("test", move |stop| {
            while stop.rest(Duration::ZERO) {
                if worked.fetch_add(1, Ordering::Relaxed) == 2 {
                    told.send(()).unwrap();
                }
            }
            // For longer than anybody waits: it is told at once.
            assert!(!stop.rest(Duration::from_secs(3_600)));
        });
        third.recv().unwrap();
        drop(thread.unwrap());
        assert_eq!(Arc::strong_count(&rounds), 1);
    }
}
