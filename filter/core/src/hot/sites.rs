// SPDX-License-Identifier: Apache-2.0
//! How sites share a worker's room for copies.
//!
//! What one site leaves of the room is lent to the others. A site that needs more takes from one that loses no copy by
//! that. If there is none, it takes from the site that is furthest above its share, as long as that is still above the
//! taker then. Else its own copies go. So a site within its share loses no copy that could be served (weighted max-min
//! fairness). The memory for keys without a copy is shared in the same way.

use super::copy::HotCopy;
use super::store_check::REREAD_MILLIS;
use super::table::CopyTable;
use crate::workers::recent_keys::RecentKeys;
use crate::workers::{KeyHash, Millis};

/// A site takes at least this part of its share at once, so that room does not change hands with each copy.
const PART: u64 = 16;

/// The number of a site: its place among all sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteNumber(pub u16);

/// The copies of all sites.
#[derive(Debug, Default)]
pub struct SiteTables {
    sites: Vec<Site>,
    room: u64,
    /// The room that no site has.
    free: u64,
    /// For how many keys there is memory.
    keys: usize,
    /// The weights of the active sites together.
    active_shares: u64,
    len: usize,
    bytes: u64,
    /// When the copy was seen that was taken last.
    newest: Millis,
}

/// What one site has.
#[derive(Debug, Default)]
struct Site {
    /// Its weight; 0: there is no such site.
    share: u32,
    /// Whether it has used its share lately.
    active: bool,
    table: Option<CopyTable>,
    /// When its newest copy was seen.
    newest: Millis,
    /// The keys that were asked for lately and have no copy.
    asked: RecentKeys<()>,
    /// When it was asked last for a key that has no copy.
    last_asked: Millis,
}

impl SiteTables {
    /// No copies yet, of one site, for which there are `room` bytes and the memory for `keys`.
    pub fn new(keys: usize, room: u64) -> Self {
        let mut tables = Self {
            room,
            free: room,
            keys,
            ..Self::default()
        };
        tables.set_shares(&[1]);
        tables
    }

    /// Replaces the weights of the sites. What a site without a weight has goes.
    pub fn set_shares(&mut self, shares: &[u32]) {
        for number in 0..self.sites.len() {
            if shares.get(number).is_none_or(|share| *share == 0) {
                self.close(number);
                if let Some(site) = self.sites.get_mut(number) {
                    *site = Site::default();
                }
            }
        }
        self.sites.resize_with(shares.len(), Site::default);
        for (site, share) in self.sites.iter_mut().zip(shares) {
            site.share = *share;
        }
        self.count_active();
    }

    /// The copies of a site.
    pub fn of(&self, site: SiteNumber) -> Option<&CopyTable> {
        self.sites.get(usize::from(site.0))?.table.as_ref()
    }

    /// Whether a site has a copy under `key`. This is no use of it.
    pub fn holds(&self, site: SiteNumber, key: KeyHash) -> bool {
        self.of(site).is_some_and(|table| table.holds(key))
    }

    /// Whether a site can take `bytes` more for which no copy goes.
    pub fn has_room(&self, site: SiteNumber, bytes: u64) -> bool {
        let Some(site) = self.sites.get(usize::from(site.0)) else {
            return false;
        };
        let own = site.bytes().saturating_add(bytes) <= site.room() + self.free;
        let lent = self.bytes.saturating_add(bytes) <= self.room - self.room / PART;
        site.share > 0 && (own || lent)
    }

    /// Whether `key` was asked for before. It has been, from now on.
    pub fn was_asked_for(&mut self, site: SiteNumber, key: KeyHash) -> bool {
        let number = usize::from(site.0);
        self.open(number);
        let keys = self.share_of(number, self.keys as u64);
        let Some(site) = self.sites.get_mut(number).filter(|site| site.share > 0) else {
            return false;
        };
        site.last_asked = self.newest;
        let known = site.asked.peek(key).is_some();
        if !known {
            site.asked.set_capacity(keys as usize);
            site.asked.insert(key, ());
        }
        known
    }

    /// Takes a copy in the place of the one that there is.
    pub fn insert(&mut self, site: SiteNumber, key: KeyHash, copy: HotCopy) {
        let number = usize::from(site.0);
        self.newest = copy.sighting.seen;
        self.open(number);
        if !self.holds(site, key) {
            self.make_room(number, copy.bytes() as u64);
        }
        if let Some(site) = self.sites.get_mut(number) {
            site.newest = self.newest;
        }
        self.change(number, |table| table.insert(key, copy));
    }

    /// Forgets a site's `key`.
    pub fn remove(&mut self, site: SiteNumber, key: KeyHash) {
        self.change(usize::from(site.0), |table| table.remove(key));
    }

    /// Number of copies.
    pub fn len(&self) -> usize {
        self.len
    }

    /// What they take of the memory.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gets a site the room for one more copy of `bytes`, or as much as it may have.
    fn make_room(&mut self, taker: usize, bytes: u64) {
        let Some(site) = self.sites.get(taker).filter(|site| site.share > 0) else {
            return;
        };
        let (used, room) = (site.bytes() + bytes, site.room());
        // A table takes no copy that nearly fills it.
        let needed = used.max(bytes + bytes / PART);
        if room >= needed {
            return;
        }
        self.close_idle(taker);
        let mut gained = std::mem::take(&mut self.free);
        while room + gained < needed {
            let lacking = needed - room - gained;
            let part = lacking.max(self.share_of(taker, self.room) / PART);
            let Some(giver) = self.giver(taker, used, part) else {
                break;
            };
            gained += self.take(giver, part);
        }
        self.grow(taker, gained);
    }

    /// The site that should give `part` bytes of its room to the `taker`, which would then use `used` bytes.
    fn giver(&self, taker: usize, used: u64, part: u64) -> Option<usize> {
        let used = load(used, self.sites.get(taker)?.share);
        let others = self.sites.iter().enumerate();
        let others = others.filter(|(number, site)| *number != taker && site.room() > 0);
        let loads = others.map(|(number, site)| (site.load_without(part), number));
        let (most, giver) = loads.max()?;
        (most >= used).then_some(giver)
    }

    /// Takes up to `part` bytes of its room from a site. Gives how many.
    fn take(&mut self, giver: usize, part: u64) -> u64 {
        let mut taken = 0;
        self.change(giver, |table| {
            taken = part.min(table.room());
            table.resize(table.room() - taken);
        });
        taken
    }

    /// Gives a site so much more room.
    fn grow(&mut self, taker: usize, room: u64) {
        let keys = self.keys as u64 * room / self.room.max(1);
        let Some(site) = self.sites.get_mut(taker).filter(|_| room > 0) else {
            return;
        };
        match &mut site.table {
            Some(table) => table.resize(table.room() + room),
            None => site.table = Some(CopyTable::new(keys as usize, room)),
        }
    }

    /// What a site may have of `whole` when all active sites need more.
    fn share_of(&self, number: usize, whole: u64) -> u64 {
        let share = self.sites.get(number).map_or(0, |site| site.share);
        whole.saturating_mul(u64::from(share)) / self.active_shares.max(1)
    }

    /// Notes that a site uses its share.
    fn open(&mut self, number: usize) {
        if let Some(site) = self.sites.get_mut(number)
            && !site.active
        {
            site.active = true;
            self.count_active();
        }
    }

    /// Removes the copies of all sites but the `taker` that are too old to be served, and what is known of the keys that
    /// nobody has asked for as long.
    fn close_idle(&mut self, taker: usize) {
        let idle = self.newest.saturating_sub(REREAD_MILLIS);
        for number in (0..self.sites.len()).filter(|number| *number != taker) {
            if self
                .sites
                .get(number)
                .is_some_and(|site| site.newest <= idle)
            {
                self.close(number);
            }
            if let Some(site) = self.sites.get_mut(number)
                && site.last_asked <= idle
            {
                site.asked = RecentKeys::default();
                site.active = site.table.is_some();
            }
        }
        self.count_active();
    }

    /// Removes the copies of a site.
    fn close(&mut self, number: usize) {
        let site = self.sites.get_mut(number);
        if let Some(table) = site.and_then(|site| site.table.take()) {
            self.len -= table.len();
            self.bytes -= table.bytes();
            self.free += table.room();
        }
    }

    fn count_active(&mut self) {
        let active = self.sites.iter().filter(|site| site.active);
        self.active_shares = active.map(|site| u64::from(site.share)).sum();
    }

    /// Changes the table of a site, if it has one.
    fn change(&mut self, number: usize, change: impl FnOnce(&mut CopyTable)) {
        let site = self.sites.get_mut(number);
        let Some(table) = site.and_then(|site| site.table.as_mut()) else {
            return;
        };
        let (len, bytes) = (self.len - table.len(), self.bytes - table.bytes());
        change(table);
        (self.len, self.bytes) = (len + table.len(), bytes + table.bytes());
    }
}

impl Site {
    fn bytes(&self) -> u64 {
        self.table.as_ref().map_or(0, CopyTable::bytes)
    }

    fn room(&self) -> u64 {
        self.table.as_ref().map_or(0, CopyTable::room)
    }

    /// How far above its share the site would be without `part` bytes of its room. A site that would lose no copy counts as
    /// above all others.
    fn load_without(&self, part: u64) -> u64 {
        if self.bytes().saturating_add(part) <= self.room() {
            return u64::MAX;
        }
        load(self.room().saturating_sub(part), self.share)
    }
}

/// How many times its share a site uses, in a unit that is the same for all sites.
fn load(used: u64, share: u32) -> u64 {
    used.saturating_mul(1 << 24) / u64::from(share.max(1))
}
