// SPDX-License-Identifier: Apache-2.0
//! A test whose claim is about time says nothing on a machine that stands still for seconds, as virtual ones do. It is
//! repeated there. (A machine that is only busy is not noticed here: a test has to leave time for that.)

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often a scene is played at most.
const TIMES: usize = 5;
/// How often the machine is looked at.
const PERIOD: Duration = Duration::from_millis(5);

/// Plays a scene in which something has to happen within a time of which `slack` is left over. Where it fails, and the
/// machine has stood still for longer than that meanwhile, it is played again.
///
/// # Panics
/// When the scene does, and that is no excuse.
pub async fn unless_the_machine_stands_still(slack: Duration, scene: impl AsyncFn()) {
    let watch = || {
        let watch = Watch::start();
        move || watch.end() > slack
    };
    play(watch, scene).await;
}

/// `watch` begins to look at the machine, and gives what says whether it has stood still since.
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

/// Runs to the end, or to a panic.
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

/// A thread that has nothing to do but to notice that it did not run.
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

    /// For how long it did not run at most.
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

    /// How often a scene is played that fails so often on a machine that has stood still or not.
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
