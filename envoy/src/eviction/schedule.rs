// SPDX-License-Identifier: Apache-2.0
//! When to make room, and when to look again: what follows from the gauges of Envoy's caches.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Usage;
use crate::admin::CacheStats;

/// From here on a store is nearly full.
const NEARLY_FULL: f64 = 0.99;
/// By so much of the bound gauges drop only when Envoy has counted what there is.
const STEP: f64 = 0.01;
/// Envoy has read its folder after so long for each file: four times what it takes where a core is free.
const READ: Duration = Duration::from_micros(16);
/// What is left of a store that was nearly full, at most and at least.
const MOST_KEPT: f64 = 0.93;
const LEAST_KEPT: f64 = 0.75;
/// With fewer files Envoy's own way costs little, and room made ahead may be an object too many.
const LEAST_FILES: u64 = 256;
/// Between two looks at the gauges, each of which takes 0.2 ms of Envoy's main thread.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);
/// See [`SHORTEST_WAIT`].
pub const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Room is made in a store that will be full in this time: that of two looks, as one may come late.
const AHEAD: Duration = Duration::from_millis(200);
/// The room that is made suffices for this long at least, if it can be made.
const ROOM_FOR: Duration = Duration::from_millis(500);

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Make room now, so that this is what there is at most.
    pub keep: Option<Usage>,
    /// Look at the gauges again after this.
    pub wait: Duration,
}

/// What is known of the caches that Envoy has in one folder, by its names.
#[derive(Debug)]
pub struct Schedule {
    bound: Usage,
    caches: BTreeMap<String, Cache>,
    wait: Duration,
}

/// A cache at the last look.
#[derive(Clone, Copy, Debug)]
struct Cache {
    stats: CacheStats,
    /// Of the bound, 0 to 1; more when Envoy is late.
    fullness: f64,
    /// By how much of the bound it has grown in a second, where Envoy has not read the folder meanwhile.
    grown: Option<f64>,
    /// By how much it grows: what two looks agree on, as the gauges jump when Envoy has counted what a start finds.
    growth: f64,
    relief: Relief,
}

/// Whether room has been made that the gauges do not show before Envoy has read the folder itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relief {
    None,
    /// Since the last look, while Envoy may have been reading.
    Fresh,
    /// Before Envoy had begun to read more often than this.
    Since(u64),
    /// And Envoy has begun to read since, so long ago.
    Reading(Duration),
}

impl Schedule {
    /// For a folder that may hold `bound`.
    pub const fn new(bound: Usage) -> Self {
        Self {
            bound,
            caches: BTreeMap::new(),
            wait: SHORTEST_WAIT,
        }
    }

    /// What to do when the caches say `caches`, `since` the last look.
    pub fn next(&mut self, caches: BTreeMap<String, CacheStats>, since: Duration) -> Step {
        let bound = self.bound;
        let before = std::mem::take(&mut self.caches);
        let seen = caches.into_iter().map(|(name, stats)| {
            let before = before.get(&name);
            let same = before.filter(|before| before.stats.limit_bytes == stats.limit_bytes);
            let cache = Cache::seen(stats, same, since, bound);
            (name, cache)
        });
        self.caches = seen.collect();
        let due = self.caches.values().filter(|cache| cache.wants_room());
        let growth = due.map(|cache| cache.growth).reduce(f64::max);
        let keep = growth.map(|growth| bound.scaled(kept(growth)));
        for cache in self.caches.values_mut().filter(|cache| cache.wants_room()) {
            cache.relief = Relief::Fresh;
        }
        self.wait = self.next_wait();
        Step {
            keep,
            wait: self.wait,
        }
    }

    /// Half of the time until something is due, as what grows may grow faster; longer and longer where nothing does.
    fn next_wait(&self) -> Duration {
        let caches = self.caches.values().filter(|cache| cache.is_large());
        let left = caches.filter_map(Cache::seconds_left).reduce(f64::min);
        let wait = left.map_or(self.wait * 2, |seconds| {
            Duration::try_from_secs_f64(seconds / 2.0).unwrap_or(LONGEST_WAIT)
        });
        wait.clamp(SHORTEST_WAIT, LONGEST_WAIT)
    }
}

impl Cache {
    fn seen(stats: CacheStats, before: Option<&Self>, since: Duration, bound: Usage) -> Self {
        let fullness = stats.usage.of(bound);
        let dropped = |before: &Self| fullness < before.fullness - STEP;
        let counted =
            |before: &Self| before.stats.eviction_runs != stats.eviction_runs || dropped(before);
        let grown = before.filter(|before| !counted(before)).map(|before| {
            let seconds = since.as_secs_f64().max(f64::EPSILON);
            ((fullness - before.fullness) / seconds).max(0.0)
        });
        let growth = before.map_or(0.0, |before| match (before.grown, grown) {
            (Some(one), Some(other)) => one.min(other),
            _ => before.growth,
        });
        let relief = before.map_or(Relief::None, |before| {
            before.relief.after(stats, dropped(before), since)
        });
        Self {
            stats,
            fullness,
            grown,
            growth,
            relief,
        }
    }

    fn wants_room(&self) -> bool {
        let soon = self.fullness + self.growth * AHEAD.as_secs_f64();
        let full = self.fullness >= NEARLY_FULL || soon >= 1.0;
        full && self.relief == Relief::None && self.is_large()
    }

    const fn is_large(&self) -> bool {
        self.stats.usage.files >= LEAST_FILES
    }

    /// Until it is nearly full, or where room has been made, until Envoy reads the folder; `None`: it does not grow.
    fn seconds_left(&self) -> Option<f64> {
        let Some(grown) = self.grown else {
            // To be seen soon.
            return Some(0.0);
        };
        let until = match self.relief {
            Relief::None => NEARLY_FULL,
            Relief::Fresh | Relief::Since(_) | Relief::Reading(_) => 1.0,
        };
        (grown > 0.0).then(|| (until - self.fullness).max(0.0) / grown)
    }
}

impl Relief {
    /// At the next look, `since` the last, when the gauges have `dropped` as they do when Envoy has counted, or have not, as
    /// it still reads, or as enough has come in since.
    fn after(self, stats: CacheStats, dropped: bool, since: Duration) -> Self {
        match self {
            _ if dropped => Self::None,
            Self::Fresh => Self::Since(stats.eviction_runs),
            Self::Since(runs) if stats.eviction_runs > runs => Self::Reading(Duration::ZERO),
            Self::Reading(time) => {
                let files = u32::try_from(stats.usage.files).unwrap_or(u32::MAX);
                let (time, ends) = (time + since, READ * files);
                if time < ends {
                    Self::Reading(time)
                } else {
                    Self::None
                }
            }
            Self::None | Self::Since(_) => self,
        }
    }
}

/// How much stays, of the bound, of what grows by so much of it in a second.
fn kept(growth: f64) -> f64 {
    (1.0 - growth * ROOM_FOR.as_secs_f64()).clamp(LEAST_KEPT, MOST_KEPT)
}

impl Usage {
    /// How much of `bound` this is, by bytes or by number, whichever is more.
    #[allow(clippy::cast_precision_loss)]
    fn of(self, bound: Self) -> f64 {
        let part = |used: u64, of: u64| used as f64 / of.max(1) as f64;
        part(self.bytes, bound.bytes).max(part(self.files, bound.files))
    }

    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    fn scaled(self, by: f64) -> Self {
        let scale = |number: u64| (number as f64 * by) as u64;
        Self {
            bytes: scale(self.bytes),
            files: scale(self.files),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Usage = Usage {
        bytes: 1 << 30,
        files: 10_000,
    };
    const SECOND: Duration = Duration::from_secs(1);

    fn files(files: u64, eviction_runs: u64) -> CacheStats {
        let usage = Usage { bytes: 0, files };
        CacheStats {
            usage,
            eviction_runs,
            limit_bytes: BOUND.bytes,
        }
    }

    fn one(stats: CacheStats) -> BTreeMap<String, CacheStats> {
        BTreeMap::from([("a".to_owned(), stats)])
    }

    /// A schedule that has seen these, a second apart, and what it says at last.
    fn after(seen: &[CacheStats]) -> (Schedule, Step) {
        let mut schedule = Schedule::new(BOUND);
        let mut steps = seen.iter().map(|&stats| schedule.next(one(stats), SECOND));
        let step = steps.by_ref().last().unwrap();
        drop(steps);
        (schedule, step)
    }

    #[test]
    fn room_is_made_shortly_before_the_bound_by_number_or_bytes() {
        assert_eq!(after(&[files(9_899, 0)]).1.keep, None);
        let keep = after(&[files(9_900, 0)]).1.keep.unwrap();
        assert_eq!(keep.files, 9_300);
        let usage = Usage {
            bytes: BOUND.bytes,
            files: 300,
        };
        let large = CacheStats {
            usage,
            ..files(0, 0)
        };
        let keep = after(&[large]).1.keep.unwrap();
        assert!(keep.bytes < BOUND.bytes / 100 * 94 && keep.bytes > BOUND.bytes / 100 * 92);
    }

    #[test]
    fn room_is_made_once_and_again_when_envoy_has_counted() {
        let (mut schedule, step) = after(&[files(9_900, 0)]);
        assert!(step.keep.is_some());
        // It says that it reads before it says what it has found.
        for stale in [(9_950, 0), (9_999, 0), (10_000, 0), (10_020, 1)] {
            let stats = files(stale.0, stale.1);
            assert_eq!(schedule.next(one(stats), SECOND).keep, None, "{stale:?}");
        }
        assert_eq!(schedule.next(one(files(9_500, 1)), SECOND).keep, None);
        assert!(schedule.next(one(files(9_950, 1)), SECOND).keep.is_some());
    }

    #[test]
    fn room_is_made_once_where_envoy_was_reading_already() {
        let (mut schedule, _) = after(&[files(10_000, 3)]);
        for stale in [files(10_010, 9), files(10_010, 10)] {
            assert_eq!(schedule.next(one(stale), SECOND).keep, None);
        }
        assert_eq!(schedule.next(one(files(9_400, 10)), SECOND).keep, None);
        assert!(schedule.next(one(files(9_950, 10)), SECOND).keep.is_some());
    }

    #[test]
    fn what_envoy_finds_too_full_all_the_same_is_acted_on() {
        let (mut schedule, _) = after(&[files(9_900, 0)]);
        for stale in [files(9_990, 1), files(10_001, 2)] {
            assert_eq!(schedule.next(one(stale), SECOND).keep, None);
        }
        let moment = Duration::from_millis(100);
        let still_read = one(files(10_001, 2));
        assert_eq!(schedule.next(still_read, moment).keep, None);
        assert!(schedule.next(one(files(10_000, 2)), SECOND).keep.is_some());
    }

    #[test]
    fn what_has_come_in_since_envoy_counted_may_be_as_much_as_before() {
        let (mut schedule, _) = after(&[files(9_950, 0)]);
        for stale in [files(9_950, 0), files(9_960, 1)] {
            assert_eq!(schedule.next(one(stale), SECOND).keep, None);
        }
        assert!(schedule.next(one(files(9_960, 1)), SECOND).keep.is_some());
    }

    #[test]
    fn a_cache_that_nobody_fills_any_more_stays_out_of_the_way_of_the_next() {
        let mut schedule = Schedule::new(BOUND);
        let both = |next| {
            let caches = [("old", files(9_990, 0)), ("new", files(next, 0))];
            BTreeMap::from(caches.map(|(name, stats)| (name.to_owned(), stats)))
        };
        assert!(schedule.next(both(0), SECOND).keep.is_some());
        assert_eq!(schedule.next(both(9_300), SECOND).keep, None);
        assert_eq!(schedule.next(both(9_350), SECOND).keep, None);
        assert!(schedule.next(both(9_910), SECOND).keep.is_some());
        assert_eq!(schedule.next(both(9_950), SECOND).keep, None);
    }

    #[test]
    fn the_next_cache_under_the_same_name_is_another_one() {
        let (mut schedule, _) = after(&[files(9_950, 0), files(9_950, 0)]);
        let next = CacheStats {
            limit_bytes: BOUND.bytes - 4,
            ..files(9_950, 0)
        };
        assert_eq!(schedule.next(one(files(9_950, 0)), SECOND).keep, None);
        assert!(schedule.next(one(next), SECOND).keep.is_some());
    }

    #[test]
    fn few_files_are_left_to_envoy() {
        let usage = Usage {
            bytes: BOUND.bytes,
            files: 255,
        };
        let few = CacheStats {
            usage,
            ..files(0, 0)
        };
        assert_eq!(after(&[few]).1.keep, None);
        let mut tiny = Schedule::new(Usage {
            bytes: BOUND.bytes,
            files: 10,
        });
        assert_eq!(tiny.next(one(files(10, 0)), SECOND).keep, None);
    }

    #[test]
    fn few_files_that_come_and_go_are_not_looked_at_all_the_time() {
        let busy: Vec<_> = (0..10).map(|runs| files(200, runs)).collect();
        assert_eq!(after(&busy).1.wait, LONGEST_WAIT);
    }

    #[test]
    fn what_grows_fast_gets_room_earlier_and_more_of_it() {
        // 4,000 in a second, so 800 until the next look but one.
        let grows = [files(1_250, 0), files(5_250, 0), files(9_250, 0)];
        let (_, step) = after(&grows);
        assert_eq!(step.keep.map(|keep| keep.files), Some(8_000));
        let (_, step) = after(&[files(0, 0), files(9_000, 0), files(18_000, 0)]);
        assert_eq!(step.keep.map(|keep| keep.files), Some(7_500), "no less");
        let (_, step) = after(&[files(9_230, 0), files(9_240, 0), files(9_250, 0)]);
        assert_eq!(step.keep, None);
    }

    #[test]
    fn what_envoy_counts_when_it_starts_is_no_growth() {
        let (_, step) = after(&[files(0, 0), files(9_250, 0)]);
        assert_eq!(step.keep, None);
        let (_, step) = after(&[files(0, 0), files(9_950, 0)]);
        assert_eq!(step.keep.map(|keep| keep.files), Some(9_300));
    }

    #[test]
    fn what_does_not_grow_is_looked_at_every_five_seconds() {
        let full = after(&[files(9_999, 0); 10]).1;
        assert_eq!((full.keep, full.wait), (None, LONGEST_WAIT));
        let empty = after(&[files(0, 0); 10]).1;
        assert_eq!((empty.keep, empty.wait), (None, LONGEST_WAIT));
        assert_eq!(
            Schedule::new(BOUND).next(BTreeMap::new(), SECOND).keep,
            None
        );
    }

    #[test]
    fn the_next_look_comes_before_what_grows_is_full() {
        let slow = after(&[files(1_000, 0), files(1_010, 0), files(1_020, 0)]).1;
        assert_eq!(slow.wait, LONGEST_WAIT);
        let fast = after(&[files(6_000, 0), files(7_000, 0), files(8_000, 0)]).1;
        assert!(fast.wait < SECOND && fast.wait > SHORTEST_WAIT, "{fast:?}");
        let faster = after(&[files(0, 0), files(4_900, 0), files(9_800, 0)]).1;
        assert_eq!(faster.wait, SHORTEST_WAIT);
    }

    #[test]
    fn growth_is_remembered_over_envoys_count() {
        let (mut schedule, _) = after(&[files(7_000, 0), files(8_000, 0), files(9_000, 0)]);
        let step = schedule.next(one(files(8_500, 1)), SECOND);
        assert_eq!((step.keep, step.wait), (None, SHORTEST_WAIT));
        let step = schedule.next(one(files(9_850, 1)), SECOND);
        assert!(step.keep.is_some());
    }
}
