// SPDX-License-Identifier: Apache-2.0
//! The renewal of the v2 store while Envoy runs.
//!
//! The store keeps each key open that it was ever asked for, as [`sluice_core::open_keys`] says, and ends all of that only
//! with itself. So when many keys are open, Envoy gets another instance of the store, on the same folder: it reads the
//! cache filter from a file that it watches ([`RenewedFiles`]). Requests under way end with the instance that they have, new
//! ones get the new one, and nothing that is stored is lost.
//!
//! - Envoy has an instance for each way to write the folder's path, of which there are [`INSTANCES`]. Each may keep an equal
//!   part of all keys open that may be.
//! - Where a former instance is still in use, by a long download for example, Envoy refuses its path with other bounds. Then
//!   the next path is tried.
//! - The filter counts the keys that are open, and is told with its policy that there are none again.

mod files;
mod instance;

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::admin::Admin;
use crate::joining_thread::JoiningThread;
use crate::render::Renderer;
use crate::run::say;

pub use files::{RenewedFiles, RenewedFilter};
pub use instance::{INSTANCES, StoreInstance};

/// How long Envoy is not asked how many keys are open: less than the workers could take to open so many that a renewal is
/// due, within these bounds.
const SHORTEST_REST: Duration = Duration::from_millis(200);
const LONGEST_REST: Duration = Duration::from_secs(5);
/// How many keys a worker opens in a second, at most: twice what one does that does nothing else.
const KEYS_PER_SECOND: u64 = 10_000;
/// How long Envoy may take to read a file.
const PATIENCE: Duration = Duration::from_secs(5);
const READ_POLL: Duration = Duration::from_millis(20);
/// How long is waited after a renewal that failed: ever longer.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Looks after the store of the Envoy with this admin interface and so many workers, which has read the first `files`:
/// renews it whenever that is due.
///
/// # Errors
/// There can be no more threads.
pub fn start(
    admin: Admin,
    workers: u32,
    renderer: Renderer,
    files: RenewedFiles,
) -> io::Result<JoiningThread> {
    let mut store = RenewedStore::new(admin, workers, renderer, files);
    JoiningThread::start("renewal", move |stop| {
        while stop.rest(store.rest()) {
            store.look_after();
        }
    })
}

/// Why there is no other instance.
enum Failure {
    /// All others are still in use.
    InUse,
    /// Something else.
    Fault(String),
}

/// The store, as far as it is renewed.
struct RenewedStore {
    admin: Admin,
    renderer: Renderer,
    files: RenewedFiles,
    /// The one that new requests get.
    instance: StoreInstance,
    /// The highest number that was tried.
    last_number: u32,
    /// The number that the filter knows.
    told_number: u32,
    /// The filter's count of keys when this instance began.
    opened_before: u64,
    /// How many keys this instance had open when Envoy was asked last.
    open: u64,
    /// How many may be opened in a second.
    rate: u64,
    pause: Duration,
    paused_until: Option<Instant>,
}

impl RenewedStore {
    fn new(admin: Admin, workers: u32, renderer: Renderer, files: RenewedFiles) -> Self {
        let instance = files.first_instance();
        Self {
            admin,
            renderer,
            files,
            instance,
            last_number: instance.number,
            told_number: instance.number,
            opened_before: 0,
            open: 0,
            rate: u64::from(workers).saturating_mul(KEYS_PER_SECOND),
            pause: SHORTEST_PAUSE,
            paused_until: None,
        }
    }

    /// How long it can be left alone.
    fn rest(&self) -> Duration {
        if self.told_number != self.instance.number {
            return SHORTEST_REST;
        }
        rest(self.instance.left_until_due(self.open), self.rate)
    }

    fn look_after(&mut self) {
        if (self.paused_until).is_some_and(|until| Instant::now() < until) {
            return;
        }
        let Some(opened) = self.admin.opened_keys() else {
            return;
        };
        if opened < self.opened_before {
            // Somebody has set Envoy's counters back.
            self.opened_before = 0;
        }
        self.open = opened - self.opened_before;
        let renewed = if self.told_number != self.instance.number {
            self.tell()
        } else if self.instance.left_until_due(self.open) == 0 {
            self.renew(opened)
        } else {
            return;
        };
        match renewed {
            Ok(()) => {
                self.pause = SHORTEST_PAUSE;
                self.paused_until = None;
            }
            Err(failure) => self.wait(&failure),
        }
    }

    /// Gives new requests another instance.
    fn renew(&mut self, opened: u64) -> Result<(), Failure> {
        if !self.put(RenewedFilter::FormerCache, self.instance)? {
            return Err(Failure::InUse);
        }
        for candidate in self.instance.candidates(self.last_number) {
            self.last_number = candidate.number;
            if self.put(RenewedFilter::Cache, candidate)? {
                self.instance = candidate;
                self.opened_before = opened;
                self.open = 0;
                // NB: after the store, so that no key which it has open is taken for one of the former instance.
                return self.tell();
            }
        }
        Err(Failure::InUse)
    }

    /// Tells the filter which instance there is.
    fn tell(&mut self) -> Result<(), Failure> {
        if !self.put(RenewedFilter::Edge, self.instance)? {
            return Err(Failure::Fault("Envoy refuses the policy".to_owned()));
        }
        self.told_number = self.instance.number;
        Ok(())
    }

    /// Puts a filter's file in place. False if Envoy refuses it.
    fn put(&self, filter: RenewedFilter, instance: StoreInstance) -> Result<bool, Failure> {
        let silent = || Failure::Fault("Envoy does not answer".to_owned());
        let before = self.admin.updates(filter.name()).ok_or_else(silent)?;
        let text = self.renderer.renewed(filter, instance);
        let text = text.map_err(|error| Failure::Fault(error.to_string()))?;
        self.files
            .write(filter, &text)
            .map_err(|error| Failure::Fault(error.to_string()))?;
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let now = self.admin.updates(filter.name()).ok_or_else(silent)?;
            if now != before {
                return Ok(now.taken > before.taken);
            }
            thread::sleep(READ_POLL);
        }
        Err(Failure::Fault(format!(
            "Envoy has not read {}",
            self.files.path(filter).display()
        )))
    }

    fn wait(&mut self, failure: &Failure) {
        let seconds = self.pause.as_secs();
        say(&match failure {
            Failure::InUse => format!(
                "the store cannot be renewed, as long requests still use each of its {INSTANCES} instances: what is not open in \
                 it goes around it when it is full; trying again in {seconds} s"
            ),
            Failure::Fault(what) => {
                format!("the store could not be renewed: {what}; trying again in {seconds} s")
            }
        });
        self.paused_until = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

/// How long workers may be left alone that open `rate` keys in a second at most, where `left` is not to be passed by much.
fn rest(left: u64, rate: u64) -> Duration {
    let millis = left.saturating_mul(1_000) / rate.max(1);
    Duration::from_millis(millis).clamp(SHORTEST_REST, LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_keys_may_be_opened_the_longer_a_store_is_left_alone() {
        let millis = |left, rate| rest(left, rate).as_millis();
        assert_eq!(millis(0, 20_000), 200);
        assert_eq!(millis(2_500, 20_000), 200);
        assert_eq!(millis(8_192, 20_000), 409);
        assert_eq!(millis(8_192, 10_000), 819);
        assert_eq!(millis(u64::MAX, 20_000), 5_000);
        assert_eq!(millis(1, 0), 1_000);
    }

    #[test]
    fn what_workers_open_during_a_rest_leaves_room_until_keys_are_turned_away() {
        for most in [80_000, 200_000, 1 << 22] {
            let instance = StoreInstance::first(most);
            // It is full with three quarters, as the last is for keys that come a second time.
            let full = instance.max_open_keys * 3 / 4;
            for open in (0..instance.left_until_due(0)).step_by(97) {
                let opens = rest(instance.left_until_due(open), 20_000).as_millis() * 20;
                assert!(
                    u128::from(open) + opens <= u128::from(full),
                    "{most}: {open}"
                );
            }
        }
    }
}
