// SPDX-License-Identifier: Apache-2.0
//! A gate that holds servers until the test opens it.

use crate::PATIENCE;
use std::sync::Arc;
use tokio::sync::watch;

#[derive(Clone, Copy, Default)]
struct State {
    open: bool,
    reached: usize,
}

/// Closed at first; requests that reach it wait there until [`Gate::open`].
#[derive(Clone)]
pub struct Gate(Arc<watch::Sender<State>>);

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// Creates a closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::channel(State::default()).0))
    }

    /// Lets pass all that wait, and all that arrive later.
    pub fn open(&self) {
        self.0.send_modify(|state| state.open = true);
    }

    /// Holds all that arrive from now on.
    pub fn close(&self) {
        self.0.send_modify(|state| state.open = false);
    }

    /// Number of arrivals at this gate so far, whether they still wait or not.
    #[must_use]
    pub fn reached(&self) -> usize {
        self.0.borrow().reached
    }

    /// Waits until `count` have arrived at this gate.
    ///
    /// # Panics
    /// When they have not within [`PATIENCE`].
    pub async fn wait_reached(&self, count: usize) {
        let mut state = self.0.subscribe();
        let reached =
            tokio::time::timeout(PATIENCE, state.wait_for(|state| state.reached >= count))
                .await
                .is_ok();
        assert!(
            reached,
            "{} of {count} reached the gate within {PATIENCE:?}",
            self.reached()
        );
    }

    /// Waits, on the server's side, until the gate is open.
    pub async fn pass(&self) {
        let mut state = self.0.subscribe();
        self.0.send_modify(|state| state.reached += 1);
        let _ = state.wait_for(|state| state.open).await;
    }
}
