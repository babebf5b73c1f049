// SPDX-License-Identifier: Apache-2.0
//! All keys that the store was asked for, as one worker sees them.

use std::fmt::Write;

use super::page::{Asked, Page};
use crate::board::{BoardError, KeyHash};
use crate::cas;
use crate::generations::Generations;
use crate::host::SharedStore;

/// Keys of a page, at least: a page is read and written as a whole.
const PAGE_KEYS: usize = 256;
/// Pages at most. Shared data is never given back, and by powers of two there are no more than twice as many names.
const MOST_PAGES: usize = 4_096;
/// Keys that a worker remembers to be open; for others it looks at their page.
const REMEMBERED: usize = 65_536;
/// Keys that a worker remembers to have been turned away.
const TURNED_AWAY: usize = 16_384;

/// How many keys the store may keep open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenKeysBound {
    /// So many; 0: any number.
    pub most: usize,
    /// The instance of the store that may. Each has a higher number than the one before, and begins with none.
    pub instance: u32,
}

/// The keys that one worker has asked the store for.
#[derive(Debug)]
pub struct OpenKeys {
    /// The newest instance of the store that it has asked.
    instance: u32,
    open: Generations<()>,
    turned_away: Generations<()>,
}

impl Default for OpenKeys {
    fn default() -> Self {
        Self {
            instance: 0,
            open: Generations::new(REMEMBERED),
            turned_away: Generations::new(TURNED_AWAY),
        }
    }
}

impl OpenKeys {
    /// Whether the store may be asked for `key`, which counts from now on.
    ///
    /// # Errors
    /// The shared data cannot be used now, and nothing is counted.
    pub fn ask<S: SharedStore + ?Sized>(
        &mut self,
        key: KeyHash,
        bound: OpenKeysBound,
        store: &mut S,
    ) -> Result<Asked, BoardError> {
        let OpenKeysBound { most, instance } = bound;
        if instance > self.instance {
            *self = Self {
                instance,
                ..Self::default()
            };
        }
        if most == 0 || instance < self.instance || self.open.get(key).is_some() {
            return Ok(Asked::Open);
        }
        let again = self.turned_away.peek(key).is_some();
        let part = Part::of(key, most);
        let asked = cas::update(store, &part.name, |bytes| {
            let mut page = Page::decode(bytes);
            let asked = page.ask(part.fingerprint, instance, part.most, again);
            ((asked == Asked::Opens).then(|| page.encode()), asked)
        })?;
        match asked {
            Asked::Open | Asked::Opens => {
                self.open.insert(key, ());
                self.turned_away.remove(key);
            }
            Asked::Full => self.turned_away.insert(key, ()),
        }
        Ok(asked)
    }
}

/// Where a key is counted.
struct Part {
    /// The page's name in shared data.
    name: String,
    /// What the page may have.
    most: usize,
    fingerprint: [u8; 4],
}

impl Part {
    fn of(key: KeyHash, most: usize) -> Self {
        let pages = (most / PAGE_KEYS).clamp(1, MOST_PAGES);
        let pages = 1 << pages.ilog2();
        let [.., a, b, c, d] = key.0.to_le_bytes();
        let page = key.0 % pages as u64;
        let mut name = String::with_capacity(28);
        // Writing into a String cannot fail.
        let _ = write!(name, "sluice/open/{pages}/{page}");
        Self {
            name,
            most: most / pages,
            fingerprint: [a, b, c, d],
        }
    }
}
