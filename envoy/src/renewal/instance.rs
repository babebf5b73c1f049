// SPDX-License-Identifier: Apache-2.0
//! One instance of the store after the other.

/// How many there may be at one time: one that new requests get, the one before it, and others that long requests
/// still use.
pub const INSTANCES: u32 = 4;

/// Of the keys that an instance may keep open, the part with which the next is due. The filter leaves a quarter to keys that
/// are asked for a second time.
const DUE_PERCENT: u64 = 50;

/// An instance of the v2 store. All have one folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreInstance {
    /// Higher than that of all instances before it.
    pub number: u32,
    /// How many keys it may keep open.
    pub max_open_keys: u64,
}

impl StoreInstance {
    /// The first, where all together may keep `max_open_keys` open.
    pub fn first(max_open_keys: u64) -> Self {
        Self {
            number: 0,
            max_open_keys: (max_open_keys / u64::from(INSTANCES)).max(1),
        }
    }

    /// What may take its place, with numbers above `last`: one for each other path.
    pub fn candidates(self, last: u32) -> impl Iterator<Item = Self> {
        let numbers = (1..=INSTANCES).map(move |step| last.wrapping_add(step));
        numbers
            .map(move |number| Self { number, ..self })
            .filter(move |candidate| candidate.path_number() != self.path_number())
    }

    /// How many more keys it may have than `opened` before the next is due.
    pub fn left_until_due(self, opened: u64) -> u64 {
        let due = self.max_open_keys.saturating_mul(DUE_PERCENT);
        due.div_ceil(100).saturating_sub(opened)
    }

    /// How this instance writes the path of the store's folder.
    pub fn dir(self, dir: &str) -> String {
        let same = "/.".repeat(self.path_number());
        match dir.rsplit_once('/') {
            Some((parent, name)) => format!("{parent}{same}/{name}"),
            None => format!(".{same}/{dir}"),
        }
    }

    /// Its bound on the bytes of all entries, which tells it from others of the same path.
    pub fn max_bytes(self, max_bytes: u64) -> u64 {
        max_bytes.saturating_sub(self.number.into()).max(1)
    }

    fn path_number(self) -> usize {
        (self.number % INSTANCES) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::*;

    const FIRST: StoreInstance = StoreInstance {
        number: 0,
        max_open_keys: 100,
    };

    #[test]
    fn instances_share_the_keys_that_may_be_open() {
        assert_eq!(StoreInstance::first(400), FIRST);
        assert_eq!(StoreInstance::first(1).max_open_keys, 1);
    }

    #[test]
    fn each_has_a_path_of_its_own_to_the_same_folder() {
        for dir in ["/var/cache/v2", "cache/v2", "v2", "/v2"] {
            let numbers = 0..INSTANCES;
            let paths = numbers.map(|number| StoreInstance { number, ..FIRST }.dir(dir));
            let paths: HashSet<_> = paths.collect();
            assert_eq!(paths.len(), INSTANCES as usize, "{paths:?}");
            let plain = |path: &str| Path::new(path).components().collect::<Vec<_>>().len();
            assert!(paths.iter().all(|path| path.ends_with("v2")));
            assert!(paths.iter().all(|path| plain(path) <= plain(dir) + 1));
        }
        assert_eq!(FIRST.dir("/cache/v2"), "/cache/v2");
        assert_eq!(
            StoreInstance { number: 6, ..FIRST }.dir("/cache/v2"),
            "/cache/././v2"
        );
    }

    #[test]
    fn candidates_have_the_other_paths_and_numbers_that_were_never_tried() {
        for last in [0, 1, 2, 3, 4, 7, 9, 30] {
            let candidates: Vec<_> = FIRST.candidates(last).collect();
            assert_eq!(candidates.len(), INSTANCES as usize - 1);
            for candidate in candidates {
                assert!(candidate.number > last);
                assert_ne!(candidate.dir("/a/b"), FIRST.dir("/a/b"));
            }
        }
    }

    #[test]
    fn two_of_one_path_differ_in_their_bounds() {
        let bounds = [0, 4, 8].map(|number| StoreInstance { number, ..FIRST }.max_bytes(1 << 20));
        assert_eq!(bounds, [1_048_576, 1_048_572, 1_048_568]);
        assert_eq!(StoreInstance { number: 9, ..FIRST }.max_bytes(5), 1);
    }

    #[test]
    fn the_next_is_due_before_keys_are_turned_away() {
        let left = [0, 49, 50, 51].map(|opened| FIRST.left_until_due(opened));
        assert_eq!(left, [50, 1, 0, 0]);
        let least = [0, 1].map(|opened| StoreInstance::first(1).left_until_due(opened));
        assert_eq!(least, [1, 0]);
    }
}
