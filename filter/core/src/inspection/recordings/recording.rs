// SPDX-License-Identifier: Apache-2.0
//! The time during which requests are recorded.

use crate::workers::Millis;

/// How long a recording continues after a question, in milliseconds.
pub const RECORDING_MILLIS: Millis = 10_000;

/// A recording, which a question starts, and which ends [`RECORDING_MILLIS`] after the last question. All times are
/// monotonic milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recording {
    since: Millis,
    /// The end. 0 means that no recording has started.
    until: Millis,
}

impl Recording {
    /// Starts or continues the recording. Returns whether it starts.
    pub fn extend(&mut self, now: Millis) -> bool {
        let starts = !self.is_on(now);
        if starts {
            self.since = now;
        }
        self.until = now.saturating_add(RECORDING_MILLIS);
        starts
    }

    /// Whether requests that end now are recorded.
    pub const fn is_on(&self, now: Millis) -> bool {
        now < self.until
    }

    /// Whether the recording has started, but its end has not been noted by [`Recording::stop`].
    pub const fn is_open(&self) -> bool {
        self.until > 0
    }

    /// Stops the recording.
    pub const fn stop(&mut self) {
        self.until = 0;
    }

    /// The time since the start, in milliseconds.
    pub const fn length(&self, now: Millis) -> Millis {
        now.saturating_sub(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_starts_with_a_question_and_ends_ten_seconds_after_the_last_one() {
        let mut recording = Recording::default();
        assert!(!recording.is_on(0) && !recording.is_open());
        assert!(recording.extend(5_000), "the first question");
        assert!(!recording.extend(14_999), "a further question");
        assert_eq!(recording.length(20_000), 15_000);
        assert!(recording.is_on(24_998));
        assert!(!recording.is_on(24_999));
        assert!(recording.extend(30_000), "a new recording");
        assert_eq!(recording.length(30_001), 1);
        recording.stop();
        assert!(!recording.is_on(30_001) && !recording.is_open());
    }
}
