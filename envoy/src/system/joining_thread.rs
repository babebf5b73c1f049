// SPDX-License-Identifier: Apache-2.0
//! Threads beside Envoy, which are joined before the objects that they use are dropped.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A thread that is told to end, and joined, when this is dropped.
#[derive(Debug)]
pub struct JoiningThread {
    /// The thread, and the sender that is dropped to end it.
    running: Option<(JoinHandle<()>, Sender<()>)>,
}

/// Reports to the thread whether it must end.
#[derive(Debug)]
pub struct StopToken {
    ended: Receiver<()>,
}

impl JoiningThread {
    /// Starts a thread that does `work`. The work must return soon after its token asks it to end.
    ///
    /// # Errors
    /// The process can start no more threads.
    pub fn start(name: &str, work: impl FnOnce(StopToken) + Send + 'static) -> io::Result<Self> {
        let (running, ended) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(StopToken { ended }))?;
        let running = Some((thread, running));
        Ok(Self { running })
    }
}

impl Drop for JoiningThread {
    fn drop(&mut self) {
        if let Some((thread, running)) = self.running.take() {
            drop(running);
            // The error is a panic, which has been reported already.
            let _ = thread.join();
        }
    }
}

impl StopToken {
    /// Waits for `time`, and returns `true`. When the thread must end, returns `false` at once.
    pub fn wait(&self, time: Duration) -> bool {
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
            while stop.wait(Duration::ZERO) {
                if worked.fetch_add(1, Ordering::Relaxed) == 2 {
                    told.send(()).unwrap();
                }
            }
            // The time is longer than the test may take, but the token ends the wait at once.
            assert!(!stop.wait(Duration::from_secs(3_600)));
        });
        third.recv().unwrap();
        drop(thread.unwrap());
        assert_eq!(Arc::strong_count(&rounds), 1);
    }
}
