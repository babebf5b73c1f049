// SPDX-License-Identifier: Apache-2.0
//! The slices among the files in use, and whether clients have read them again.
//!
//! The file system knows the time at which a file was read last. With the mount option `relatime`, Linux does not
//! record a reading if the time of the last one is later than that of the last change, unless a day has passed. The
//! filter and the clients of a fill read a slice as soon as it is stored, so Linux would record no later reading. So
//! the keeper takes the readings of a slice's first minute back when this minute is over.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::cache::entries::{Entry, UrlId};

/// The time in which the clients that read an object at the same time have read a slice that is new. Later readings
/// count.
pub const FIRST_READING: Duration = Duration::from_secs(60);

/// The slices among the files in use.
#[derive(Debug, Default)]
pub struct SliceFiles {
    /// The object of each slice, by the number in the file's name.
    objects: HashMap<u64, UrlId>,
    /// The slices whose first reading is not over, with its end; the first that ends is in front. Some may be gone.
    young: VecDeque<(Instant, u64)>,
}

impl SliceFiles {
    /// Adds a slice of `object` that was stored at `now`.
    pub fn add(&mut self, number: u64, object: UrlId, now: Instant) {
        self.objects.insert(number, object);
        self.young.push_back((now + FIRST_READING, number));
    }

    /// Forgets a file that is gone.
    pub fn forget(&mut self, number: u64) {
        self.objects.remove(&number);
    }

    /// Takes a slice whose first reading is over at `now`.
    pub fn take_grown(&mut self, now: Instant) -> Option<u64> {
        let (end, number) = *self.young.front()?;
        (end <= now).then(|| {
            self.young.pop_front();
            number
        })
    }

    /// The object, if `entry` is one of its slices and no client has read it again.
    pub fn unread(&self, entry: &Entry) -> Option<UrlId> {
        let object = self.objects.get(&entry.number).copied();
        object.filter(|_| !entry.was_read_after(FIRST_READING))
    }
}
