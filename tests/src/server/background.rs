// SPDX-License-Identifier: Apache-2.0
//! A task beside the test.

use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// A task with a separate thread and runtime, so that a busy test does not slow it down. It ends, with the tasks that
/// it has spawned, when dropped.
pub struct Background {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts a task on a thread of this name.
    ///
    /// # Panics
    /// When no thread can be created.
    #[must_use]
    pub fn start(name: &str, task: impl Future<Output = ()> + Send + 'static) -> Self {
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = task => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name(name.to_owned());
        Self {
            stop: Some(stop),
            thread: Some(thread.spawn(run).unwrap()),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
