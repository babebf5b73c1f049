// SPDX-License-Identifier: Apache-2.0
//! When storing pauses and goes on, by the free space.

/// Whether there is room to store responses.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    reserve: u64,
    /// The answer to the last measurement.
    left: bool,
}

impl Room {
    /// There is room until less than `reserve` bytes are free.
    pub const fn new(reserve: u64) -> Self {
        Self {
            reserve,
            left: true,
        }
    }

    /// The bytes below which storing pauses.
    pub const fn reserve(self) -> u64 {
        self.reserve
    }

    /// Whether there is room when `free` bytes are. After a pause there is room only from a quarter above the reserve,
    /// so that storing does not begin and end with each response.
    pub const fn measure(&mut self, free: u64) -> bool {
        let least = if self.left {
            self.reserve
        } else {
            self.comfortable()
        };
        self.left = free >= least;
        self.left
    }

    /// The bytes that the cache should give back when `free` bytes are free.
    pub const fn shortage(self, free: u64) -> u64 {
        self.comfortable().saturating_sub(free)
    }

    /// The free space from which on nothing is lacking.
    const fn comfortable(self) -> u64 {
        self.reserve.saturating_add(self.reserve / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storing_pauses_below_the_reserve_and_goes_on_a_quarter_above() {
        let mut room = Room::new(100);
        for (free, left) in [
            (1_000, true),
            (100, true),
            (99, false),
            (100, false),
            (124, false),
            (125, true),
            (100, true),
            (0, false),
        ] {
            assert_eq!(room.measure(free), left, "{free}");
        }
    }

    #[test]
    fn the_cache_is_asked_for_room_before_storing_pauses() {
        let room = Room::new(100);
        assert_eq!(room.shortage(200), 0);
        assert_eq!(room.shortage(125), 0);
        assert_eq!(room.shortage(110), 15);
        assert_eq!(room.shortage(0), 125);
    }
}
