// SPDX-License-Identifier: Apache-2.0
//! The least and the greatest time for which a response is fresh.

use std::time::Duration;

use crate::policy::forms::duration;
use crate::policy::forms::error::PolicyError;

/// Bounds of the time for which a response is fresh, from its arrival on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TtlBounds {
    /// Least time for a response with a status below 400 that all clients may share; zero for none.
    pub min: Duration,
    /// Greatest time, which also bounds each of the two times in which it is served stale.
    pub max: Option<Duration>,
}

impl TtlBounds {
    /// Checks that there is a time between the bounds.
    ///
    /// # Errors
    /// The greatest time is zero, or less than the least one.
    pub(in crate::policy) fn check(self) -> Result<Self, PolicyError> {
        let min = duration::format(self.min);
        match self.max {
            Some(Duration::ZERO) => Err(PolicyError::new(
                "max_ttl",
                "0s: expected at least 1s; with ttl: 0s nothing is stored",
            )),
            Some(max) if max < self.min => Err(PolicyError::new(
                "max_ttl",
                format!(
                    "{}: expected at least min_ttl, which is {min}",
                    duration::format(max)
                ),
            )),
            _ => Ok(self),
        }
    }
}
