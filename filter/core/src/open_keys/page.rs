// SPDX-License-Identifier: Apache-2.0
//! A part of all keys: those that the store was asked for lately, and how many sessions it has of them.

/// A key counts for so many minutes after the one in which the store was asked for it last: five for the life of a
/// session, and one for a request that waited between the count and the store.
pub const KEPT_MINUTES: u8 = 6;

/// One session, or certainty, as a fixed-point number.
const ONE: u64 = 1 << 10;
/// More sessions than a page ever has, in parts of [`ONE`].
const MOST_SESSIONS: u64 = u32::MAX as u64 * ONE;
/// From this probability on a request to the store ends as many sessions as it begins.
const NEARLY_ONE: u64 = ONE - ONE / 100;
/// Sessions that lie behind one another with their time over, where there are any: more than there are as a rule.
const RUN: u64 = 8;
/// Of what a page may have, the part that is left for keys that were turned away before: `1 / SPARE`.
const SPARE: u64 = 8;

const FORMAT: u8 = 1;
const ENTRY_BYTES: usize = 4 + 1 + 1;

/// What becomes of a request for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The store has a session for it: it was asked for within the last minutes.
    Open,
    /// The store will have one more.
    Opens,
    /// The store has no room for another key.
    Full,
}

/// A key that the store was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// What of the key's hash does not choose the page. Two keys of a page with one fingerprint count as one.
    fingerprint: u32,
    /// Minutes since the last request for it that the page knows of.
    age: u8,
    /// In how many minutes, after the first, it was asked for.
    returns: u8,
}

/// The keys whose hashes choose this page.
///
/// # The estimate
///
/// Sessions are in random order. A request for a key that has none puts one at a random place: the one behind it has had
/// its time as often as sessions have on the whole. When the same key is asked for again, the one behind it is gone if
/// its time was over then, so this request ends one only if that had another such behind it, or if the one behind
/// it has come to its time since. Of what is left in the end, behind keys that are asked for again and again, a part is
/// taken for gone each minute. What the page does not see, further requests within a minute, ends more. So there
/// are, on average, no more sessions than the page takes there to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The minute that ages count back from.
    minute: u32,
    /// Sessions, live ones and others, in parts of [`ONE`].
    sessions: u64,
    /// How likely it is that a live session came to its time before this minute, and after the one before.
    ended: u64,
    entries: Vec<Entry>,
}

impl Page {
    /// Reads a page; anything that this code did not write is an empty one.
    pub fn decode(bytes: &[u8]) -> Self {
        Self::try_decode(bytes).unwrap_or_default()
    }

    fn try_decode(bytes: &[u8]) -> Option<Self> {
        let ([FORMAT], bytes) = bytes.split_first_chunk()? else {
            return None;
        };
        let (minute, bytes) = bytes.split_first_chunk()?;
        let (sessions, bytes) = bytes.split_first_chunk()?;
        let (ended, bytes) = bytes.split_first_chunk()?;
        let (entries, rest) = bytes.as_chunks::<ENTRY_BYTES>();
        let entries = entries.iter().map(|[a, b, c, d, age, returns]| Entry {
            fingerprint: u32::from_le_bytes([*a, *b, *c, *d]),
            age: *age,
            returns: *returns,
        });
        let page = Self {
            minute: u32::from_le_bytes(*minute),
            sessions: u64::from_le_bytes(*sessions),
            ended: u64::from_le_bytes(*ended),
            entries: entries.collect(),
        };
        let sound = (page.live()..=MOST_SESSIONS).contains(&page.sessions) && page.ended <= ONE;
        (sound && rest.is_empty()).then_some(page)
    }

    /// The bytes that [`Page::decode`] reads.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1 + 4 + 8 + 8 + ENTRY_BYTES * self.entries.len());
        bytes.push(FORMAT);
        bytes.extend(self.minute.to_le_bytes());
        bytes.extend(self.sessions.to_le_bytes());
        bytes.extend(self.ended.to_le_bytes());
        for entry in &self.entries {
            bytes.extend(entry.fingerprint.to_le_bytes());
            bytes.extend([entry.age, entry.returns]);
        }
        bytes
    }

    /// The store is to be asked for the key with this fingerprint, in `minute`. A page may have `most` sessions; the last
    /// of them are for keys that come `again` after they were turned away, so that a flood of keys that are asked
    /// for once leaves room for others.
    pub fn ask(&mut self, fingerprint: u32, minute: u32, most: usize, again: bool) -> Asked {
        self.advance(minute);
        let known = self
            .entries
            .iter()
            .position(|entry| entry.fingerprint == fingerprint);
        if let Some(entry) = known.and_then(|position| self.entries.get_mut(position)) {
            if entry.age > 0 {
                entry.age = 0;
                entry.returns = entry.returns.saturating_add(1);
                let returns = entry.returns;
                self.sweep(returns);
            }
            return Asked::Open;
        }
        let most = most as u64 * ONE;
        let limit = if again { most } else { most - most / SPARE };
        let overdue = self.overdue();
        let grows = ONE - overdue;
        let has_room = self.sessions + grows <= limit || overdue >= NEARLY_ONE;
        if !has_room || self.live() + ONE > most {
            return Asked::Full;
        }
        self.entries.push(Entry {
            fingerprint,
            age: 0,
            returns: 0,
        });
        self.sessions = (self.sessions + grows).max(self.live());
        Asked::Opens
    }

    /// Keys that the store was asked for lately.
    pub fn open(&self) -> usize {
        self.entries.len()
    }

    /// How many sessions there are at most, on average; those that have had their time included.
    pub fn sessions(&self) -> u64 {
        self.sessions.div_ceil(ONE)
    }

    /// A key was asked for again in a later minute: the session behind it may have ended.
    fn sweep(&mut self, returns: u8) {
        let overdue = self.overdue();
        let another = (0..returns.min(32)).fold(overdue, |behind, _| behind * overdue / ONE);
        let over = self.sessions.saturating_sub(self.live());
        let part = over.checked_div(self.entries.len() as u64 * RUN);
        let ends = another.max(self.ended).max(part.unwrap_or(0));
        self.sessions = self.sessions.saturating_sub(ends).max(self.live());
    }

    /// Lets time pass until `minute`.
    fn advance(&mut self, minute: u32) {
        let passed = minute.saturating_sub(self.minute);
        if passed == 0 {
            return;
        }
        self.minute = minute;
        let before = self.entries.len() as u64;
        let passed = u8::try_from(passed).unwrap_or(u8::MAX);
        for entry in &mut self.entries {
            entry.age = entry.age.saturating_add(passed);
        }
        self.entries.retain(|entry| entry.age <= KEPT_MINUTES);
        let ended = before - self.entries.len() as u64;
        self.ended = (ended * ONE).checked_div(before).unwrap_or(0);
    }

    fn live(&self) -> u64 {
        self.entries.len() as u64 * ONE
    }

    /// The part of all sessions whose time is over.
    fn overdue(&self) -> u64 {
        let over = self.sessions.saturating_sub(self.live());
        (over * ONE).checked_div(self.sessions).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 64;

    /// A page that is asked for so many keys, each once.
    fn flooded(keys: u32, minute: u32) -> Page {
        let mut page = Page::default();
        for key in 0..keys {
            page.ask(key, minute, MOST, true);
        }
        page
    }

    #[test]
    fn a_page_takes_as_many_keys_as_it_may_have_and_knows_them() {
        let mut page = Page::default();
        for key in 0..MOST as u32 {
            assert_eq!(page.ask(key, 1, MOST, true), Asked::Opens);
        }
        assert_eq!(page.ask(999, 1, MOST, true), Asked::Full);
        assert_eq!(page.ask(0, 1, MOST, false), Asked::Open);
        assert_eq!(page.open(), MOST);
        assert_eq!(page.sessions(), MOST as u64);
    }

    #[test]
    fn what_comes_again_finds_room_that_a_flood_has_left() {
        let mut page = Page::default();
        let opened = (0..1_000).filter(|key| page.ask(*key, 1, MOST, false) == Asked::Opens);
        assert_eq!(opened.count(), MOST - MOST / 8);
        assert_eq!(page.ask(999, 1, MOST, true), Asked::Opens);
    }

    #[test]
    fn a_key_counts_for_six_minutes_after_the_last_request() {
        let mut page = Page::default();
        page.ask(7, 1, MOST, false);
        assert_eq!(page.ask(7, 4, MOST, false), Asked::Open);
        assert_eq!(page.ask(7, 10, MOST, false), Asked::Open);
        assert_eq!(page.ask(7, 17, MOST, false), Asked::Opens);
    }

    #[test]
    fn sessions_whose_time_is_over_take_room_until_requests_end_them() {
        let mut page = flooded(MOST as u32, 1);
        assert_eq!(page.ask(1_000, 20, MOST, true), Asked::Opens, "one for one");
        assert_eq!(page.open(), 1);
        assert_eq!(page.sessions(), MOST as u64);
        let opened = (2_000..3_000).filter(|key| page.ask(*key, 20, MOST, true) == Asked::Opens);
        assert!(opened.count() < 3, "there are as many sessions as before");
        for minute in 21..30 {
            page.ask(1_000, minute, MOST, true);
        }
        let opened = (3_000..4_000).filter(|key| page.ask(*key, 30, MOST, true) == Asked::Opens);
        assert!(opened.count() > 10);
        assert!(page.sessions() <= MOST as u64);
    }

    #[test]
    fn a_clock_that_goes_back_changes_nothing() {
        let mut page = flooded(10, 100);
        let before = page.clone();
        assert_eq!(page.ask(3, 50, MOST, false), Asked::Open);
        assert_eq!(page, before);
    }

    #[test]
    fn encoding_round_trips_and_foreign_bytes_are_empty() {
        let page = flooded(20, 3);
        let bytes = page.encode();
        assert_eq!(Page::decode(&bytes), page);
        for length in 0..bytes.len() {
            let part = Page::decode(bytes.get(..length).unwrap());
            assert!(part.live() <= part.sessions);
        }
        assert_eq!(Page::decode(b"somebody else's"), Page::default());
    }
}
