// SPDX-License-Identifier: Apache-2.0
//! Changed responses that wait until nobody reads what they take the place of.
//!
//! The v2 store puts a changed response into the place of the one before, and whoever is still reading
//! that one goes on with the bytes of the other. So a change waits until each worker has said that
//! nobody there reads.

use crate::board::{KeyHash, Millis, WorkerId};

/// How long readers may go on. Those who wait for the changed response wait as long.
pub const GRACE: Millis = 250;
/// How long workers may take to answer. One that takes longer has lost its VM, as a rule, and its readers
/// with it. One that only was slow goes on with the bytes of another response, or has Envoy crash.
const PATIENCE: Millis = 10_000;
/// Timer period while something waits.
const TICK: Millis = 50;

#[derive(Debug)]
struct Call {
    number: u32,
    context: u32,
    waiting: Vec<WorkerId>,
    deadline: Millis,
}

#[derive(Debug)]
struct Announced {
    caller: WorkerId,
    call: u32,
    key: KeyHash,
    deadline: Millis,
}

/// A change that waits for nothing any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The context of the response.
    pub context: u32,
    /// Who has not answered in time.
    pub missing: Vec<WorkerId>,
}

/// What a worker has to do for announced changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Keys whose readers have had their time.
    pub ended: Vec<KeyHash>,
    /// Whom to tell that nobody reads, with their numbers for the calls.
    pub acknowledged: Vec<(WorkerId, u32)>,
}

/// One worker's part in changes.
#[derive(Debug, Default)]
pub struct Changes {
    calls: Vec<Call>,
    last: u32,
    announced: Vec<Announced>,
}

impl Changes {
    /// The response in `context` waits for these workers. Gives its number for [`Changes::acknowledge`].
    pub fn wait(&mut self, context: u32, workers: Vec<WorkerId>, now: Millis) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.calls.push(Call {
            number: self.last,
            context,
            waiting: workers,
            deadline: now.saturating_add(PATIENCE),
        });
        self.last
    }

    /// Nobody of that worker reads any more.
    pub fn acknowledge(&mut self, call: u32, worker: WorkerId) {
        let mut calls = self.calls.iter_mut();
        if let Some(call) = calls.find(|known| known.number == call) {
            call.waiting.retain(|waiting| *waiting != worker);
        }
    }

    /// The response in `context` has gone.
    pub fn forget(&mut self, context: u32) {
        self.calls.retain(|call| call.context != context);
    }

    /// Takes out the responses that wait for nothing any more, or have waited for too long.
    pub fn take_settled(&mut self, now: Millis) -> Vec<Settled> {
        let is_settled = |call: &Call| call.waiting.is_empty() || call.deadline <= now;
        let settled = self.calls.extract_if(.., |call| is_settled(call));
        settled
            .map(|call| Settled {
                context: call.context,
                missing: call.waiting,
            })
            .collect()
    }

    /// A worker has a changed response for `key`, and waits for this one.
    pub fn announce(&mut self, caller: WorkerId, call: u32, key: KeyHash, now: Millis) {
        self.announced.push(Announced {
            caller,
            call,
            key,
            deadline: now.saturating_add(GRACE),
        });
    }

    /// Whether a change waits for this worker.
    pub fn is_waited_for(&self) -> bool {
        !self.announced.is_empty()
    }

    /// Whether one for `key` does.
    pub fn is_announced(&self, key: KeyHash) -> bool {
        self.announced.iter().any(|change| change.key == key)
    }

    /// What is to be done, now that `is_read` says which keys are read here.
    pub fn take_due(&mut self, now: Millis, mut is_read: impl FnMut(KeyHash) -> bool) -> Due {
        let mut due = Due::default();
        self.announced.retain(|change| {
            let read = is_read(change.key);
            if read && now < change.deadline {
                return true;
            }
            if read {
                due.ended.push(change.key);
            }
            due.acknowledged.push((change.caller, change.call));
            false
        });
        due
    }

    /// The timer period that is needed.
    pub fn tick_period(&self) -> Option<Millis> {
        let idle = self.calls.is_empty() && self.announced.is_empty();
        (!idle).then_some(TICK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: WorkerId = WorkerId(1);
    const TWO: WorkerId = WorkerId(2);
    const KEY: KeyHash = KeyHash(7);

    #[test]
    fn a_change_waits_for_every_worker() {
        let mut changes = Changes::default();
        let call = changes.wait(5, vec![ONE, TWO], 0);
        changes.acknowledge(call, TWO);
        assert_eq!(changes.take_settled(1), []);
        changes.acknowledge(call, ONE);
        let settled = Settled {
            context: 5,
            missing: vec![],
        };
        assert_eq!(changes.take_settled(1), [settled]);
        assert_eq!(changes.tick_period(), None);
    }

    #[test]
    fn a_change_does_not_wait_for_ever() {
        let mut changes = Changes::default();
        let call = changes.wait(5, vec![ONE, TWO], 0);
        changes.acknowledge(call, ONE);
        assert_eq!(changes.take_settled(PATIENCE - 1), []);
        let settled = Settled {
            context: 5,
            missing: vec![TWO],
        };
        assert_eq!(changes.take_settled(PATIENCE), [settled]);
    }

    #[test]
    fn a_response_that_has_gone_waits_no_more() {
        let mut changes = Changes::default();
        changes.wait(5, vec![ONE], 0);
        changes.forget(5);
        assert_eq!(changes.take_settled(PATIENCE), []);
    }

    #[test]
    fn who_does_not_read_says_so_at_once() {
        let mut changes = Changes::default();
        changes.announce(TWO, 9, KEY, 0);
        let due = changes.take_due(0, |_| false);
        assert_eq!(due.acknowledged, [(TWO, 9)]);
        assert_eq!(due.ended, []);
        assert!(!changes.is_waited_for());
    }

    #[test]
    fn readers_have_their_time_and_are_ended_then() {
        let mut changes = Changes::default();
        changes.announce(TWO, 9, KEY, 0);
        assert_eq!(changes.take_due(GRACE - 1, |_| true), Due::default());
        let due = changes.take_due(GRACE, |key| key == KEY);
        assert_eq!(due.ended, [KEY]);
        assert_eq!(due.acknowledged, [(TWO, 9)]);
        assert_eq!(changes.take_due(GRACE, |_| true), Due::default());
    }
}
