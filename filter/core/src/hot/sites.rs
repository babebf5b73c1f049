// SPDX-License-Identifier: Apache-2.0
//! How sites share a worker's room for copies.
//!
//! Unused room of a site is lent to the others. A site that needs more room takes it from a site that loses no copy
//! by that. If there is none, it takes room from the site that is furthest above its share, as long as that site is
//! then still above the taker. Otherwise it evicts its own copies. So a site within its share loses no copy that
//! could be served (weighted max-min fairness). The memory for keys without a copy is shared in the same way.

use super::copy::HotCopy;
use super::store_check::REREAD_MILLIS;
use super::table::CopyTable;
use crate::workers::recent_keys::RecentKeys;
use crate::workers::{KeyHash, Millis};

/// Divisor of a site's share that gives the smallest part of room to take at once, so that room does not change
/// owners with each copy.
const PART: u64 = 16;

/// The number of a site: its index among all sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteNumber(pub u16);

/// The copies of all sites.
#[derive(Debug, Default)]
pub struct SiteTables {
    sites: Vec<Site>,
    room: u64,
    /// The room that does not belong to a site.
    free: u64,
    /// Number of keys for which there is memory.
    keys: usize,
    /// Sum of the weights of the active sites.
    active_shares: u64,
    len: usize,
    bytes: u64,
    /// Time at which the newest inserted copy was seen in the store.
    newest: Millis,
}

/// The state of one site.
#[derive(Debug, Default)]
struct Site {
    /// Its weight; 0 if the site does not exist.
    share: u32,
    /// Whether it has used its share a short time ago.
    active: bool,
    table: Option<CopyTable>,
    /// Time at which its newest copy was seen in the store.
    newest: Millis,
    /// The keys without a copy that were requested a short time ago.
    asked: RecentKeys<()>,
    /// Time of the last request for a key without a copy.
    last_asked: Millis,
}

impl SiteTables {
    /// Empty tables for one site, with `room` bytes for copies and memory for `keys` keys.
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

    /// Replaces the weights of the sites. Removes the copies of sites without a weight.
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

    /// Whether a site has a copy under `key`. This does not count as a use of the copy.
    pub fn holds(&self, site: SiteNumber, key: KeyHash) -> bool {
        self.of(site).is_some_and(|table| table.holds(key))
    }

    /// Whether a site can take `bytes` more without evicting a copy.
    pub fn has_room(&self, site: SiteNumber, bytes: u64) -> bool {
        let Some(site) = self.sites.get(usize::from(site.0)) else {
            return false;
        };
        let own = site.bytes().saturating_add(bytes) <= site.room() + self.free;
        let lent = self.bytes.saturating_add(bytes) <= self.room - self.room / PART;
        site.share > 0 && (own || lent)
    }

    /// Whether `key` was requested before. Notes this request.
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

    /// Inserts a copy, and replaces an existing copy of the key.
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

    /// Removes the copy of a site under `key`.
    pub fn remove(&mut self, site: SiteNumber, key: KeyHash) {
        self.change(usize::from(site.0), |table| table.remove(key));
    }

    /// Number of copies.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Size of the copies in memory, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Obtains the room for one more copy of `bytes` bytes for a site, or as much as the site may have.
    fn make_room(&mut self, taker: usize, bytes: u64) {
        let Some(site) = self.sites.get(taker).filter(|site| site.share > 0) else {
            return;
        };
        let (used, room) = (site.bytes() + bytes, site.room());
        // A table does not accept a copy that nearly fills it.
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

    /// The site that should give `part` bytes of its room to the `taker`, whose use would then be `used` bytes.
    fn giver(&self, taker: usize, used: u64, part: u64) -> Option<usize> {
        let used = load(used, self.sites.get(taker)?.share);
        let others = self.sites.iter().enumerate();
        let others = others.filter(|(number, site)| *number != taker && site.room() > 0);
        let loads = others.map(|(number, site)| (site.load_without(part), number));
        let (most, giver) = loads.max()?;
        (most >= used).then_some(giver)
    }

    /// Takes at most `part` bytes of room from a site. Returns the number of bytes.
    fn take(&mut self, giver: usize, part: u64) -> u64 {
        let mut taken = 0;
        self.change(giver, |table| {
            taken = part.min(table.room());
            table.resize(table.room() - taken);
        });
        taken
    }

    /// Adds `room` bytes to the room of a site.
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

    /// The share of a site in `whole` while all active sites need more.
    fn share_of(&self, number: usize, whole: u64) -> u64 {
        let share = self.sites.get(number).map_or(0, |site| site.share);
        whole.saturating_mul(u64::from(share)) / self.active_shares.max(1)
    }

    /// Marks a site as active.
    fn open(&mut self, number: usize) {
        if let Some(site) = self.sites.get_mut(number)
            && !site.active
        {
            site.active = true;
            self.count_active();
        }
    }

    /// Removes the copies of all sites except the `taker` that are too old to be served, and the keys without a copy
    /// that were not requested for the same time.
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

    /// The load of the site without `part` bytes of its room, relative to its share. A site that would lose no copy
    /// counts as above all others.
    fn load_without(&self, part: u64) -> u64 {
        if self.bytes().saturating_add(part) <= self.room() {
            return u64::MAX;
        }
        load(self.room().saturating_sub(part), self.share)
    }
}

/// The use of a site relative to its share, in a unit that is the same for all sites.
fn load(used: u64, share: u32) -> u64 {
    used.saturating_mul(1 << 24) / u64::from(share.max(1))
}
