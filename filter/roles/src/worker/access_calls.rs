// SPDX-License-Identifier: Apache-2.0
//! The questions of a worker about the access of clients.

use std::cell::Cell;
use std::rc::Rc;

/// The most questions of one worker at one time.
const MOST: usize = 1_024;

/// The number of questions that wait for their answers.
#[derive(Debug, Default)]
pub struct AccessCalls(Rc<Cell<usize>>);

/// A question that is under way. It is counted until this value is dropped, whether its answer has come or its client
/// has left.
#[derive(Debug)]
pub struct AccessCall(Rc<Cell<usize>>);

impl AccessCalls {
    /// Begins a question; `None` if the bound allows none.
    pub fn begin(&self) -> Option<AccessCall> {
        let under_way = self.0.get();
        (under_way < MOST).then(|| {
            self.0.set(under_way + 1);
            AccessCall(Rc::clone(&self.0))
        })
    }
}

impl Drop for AccessCall {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_bounded() {
        let calls = AccessCalls::default();
        let mut begun: Vec<_> = (0..MOST).map_while(|_| calls.begin()).collect();
        assert_eq!(begun.len(), MOST);
        assert!(calls.begin().is_none());
        begun.pop();
        let last = calls.begin();
        assert!(last.is_some() && calls.begin().is_none());
    }
}
