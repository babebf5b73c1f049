// SPDX-License-Identifier: Apache-2.0
//! Repeats a test whose claim is about time if the machine stood still for seconds, as virtual machines do. (A busy
//! machine is not noticed here: a test has to leave time for that.)

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Largest number of times that a scene is played.
const TIMES: usize = 5;
/// Period of looking at the machine.
const PERIOD: Duration = Duration::from_millis(5);

/// Plays a scene in which an event has to happen within a time that leaves `slack`. If the scene fails, and the
/// machine has stood still for longer than that meanwhile, the scene is played again.
///
/// # Panics
/// When the scene panics, and the machine has not stood still.
pub async fn unless_the_machine_stands_still(slack: Duration, scene: impl AsyncFn()) {
    let watch = || {
        let watch = Watch::start();
        move || watch.end() > slack
    };
    play(watch, scene).await;
}

/// Plays a scene repeatedly. `watch` starts to observe the machine, and returns a function that says whether it has
/// stood still since.
async fn play<Stood: FnOnce() -> bool>(watch: impl Fn() -> Stood, scene: impl AsyncFn()) {
    for time in 1..=TIMES {
        let stood_still = watch();
        let Err(panic) = catch(scene()).await else {
            return;
        };
        if !stood_still() || time == TIMES {
            resume_unwind(panic);
        }
        println!("the machine has stood still, and the scene is played again");
    }
}

/// Runs the scene to its end, or to a panic.
async fn catch(scene: impl Future<Output = ()>) -> Result<(), Box<dyn Any + Send>> {
    let mut scene = pin!(scene);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| scene.as_mut().poll(context)));
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}

/// A thread that only notices that it did not run.
struct Watch {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Watch {
    fn start() -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let ended = Arc::clone(&ended);
            move || longest_pause(&ended)
        });
        Self { ended, thread }
    }

    /// Longest time for which the thread did not run.
    fn end(self) -> Duration {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn longest_pause(ended: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !ended.load(Ordering::Relaxed) {
        let before = Instant::now();
        thread::sleep(PERIOD);
        longest = longest.max(before.elapsed().saturating_sub(PERIOD));
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Number of times that a scene is played that fails `failures` times, on a machine that stands still or not.
    async fn played(failures: usize, stands_still: bool) -> (usize, bool) {
        let times = Cell::new(0);
        let scene = async || {
            times.set(times.get() + 1);
            assert!(times.get() > failures, "as it was to be");
        };
        let outcome = catch(play(|| move || stands_still, scene)).await;
        (times.get(), outcome.is_ok())
    }

    #[tokio::test]
    async fn a_scene_is_played_again_only_where_it_fails_and_the_machine_has_stood_still() {
        assert_eq!(played(0, true).await, (1, true));
        assert_eq!(played(1, true).await, (2, true));
        assert_eq!(played(1, false).await, (1, false));
        assert_eq!(played(TIMES, true).await, (TIMES, false));
    }
}
