// SPDX-License-Identifier: Apache-2.0
//! The free space at which storing pauses and at which it continues.

/// Whether there is room to store responses.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The bytes below which storing pauses.
    pub reserve: u64,
    /// Whether responses are stored.
    pub is_left: bool,
}

impl Room {
    /// Whether there is room when `free` bytes are free. After a pause there is room only from a quarter above the
    /// reserve, so that storing does not pause and continue with each response.
    pub const fn is_left_with(self, free: u64) -> bool {
        if self.is_left {
            free >= self.reserve
        } else {
            self.shortage(free) == 0
        }
    }

    /// The bytes that the cache should give back when `free` bytes are free.
    pub const fn shortage(self, free: u64) -> u64 {
        let comfortable = self.reserve.saturating_add(self.reserve / 4);
        comfortable.saturating_sub(free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room {
        reserve: 100,
        is_left: true,
    };

    #[test]
    fn storing_pauses_below_the_reserve_and_goes_on_a_quarter_above() {
        let mut room = ROOM;
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
            room.is_left = room.is_left_with(free);
            assert_eq!(room.is_left, left, "{free}");
        }
    }

    #[test]
    fn the_cache_is_asked_for_room_before_storing_pauses() {
        assert_eq!(ROOM.shortage(200), 0);
        assert_eq!(ROOM.shortage(125), 0);
        assert_eq!(ROOM.shortage(110), 15);
        assert_eq!(ROOM.shortage(0), 125);
    }
}
