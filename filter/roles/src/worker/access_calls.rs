// SPDX-License-Identifier: Apache-2.0
//! The questions of a worker about the access of clients.

/// The most questions of one worker at one time.
const MOST: usize = 1_024;

/// The questions that wait for their answers.
#[derive(Debug, Default)]
pub struct AccessCalls {
    under_way: usize,
}

impl AccessCalls {
    /// Begins a question. Returns false if the bound allows none.
    pub const fn begin(&mut self) -> bool {
        let has_room = self.under_way < MOST;
        self.under_way += has_room as usize;
        has_room
    }

    /// Ends a question, whose answer has come or whose client has left.
    pub const fn end(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_bounded() {
        let mut calls = AccessCalls::default();
        assert!((0..MOST).all(|_| calls.begin()));
        assert!(!calls.begin());
        calls.end();
        assert!(calls.begin() && !calls.begin());
    }
}
