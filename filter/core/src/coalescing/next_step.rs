// SPDX-License-Identifier: Apache-2.0
//! The way in which a request continues, at once or after it has waited.

use crate::freshness::UncacheableReason;

/// The way in which a request continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// To the store, which is believed to have a fresh response.
    Fresh,
    /// To the store, as the leader: it fetches for all waiting requests.
    Lead,
    /// To the store, which has the response that the request has waited for.
    Collapsed,
    /// To the store, which has the response that was validated while the request waited.
    Validated,
    /// To the store, neither as a leader nor as a follower: a limit was reached, the board cannot be used, or the
    /// request cannot fill the store.
    Alone,
    /// To the store, which asks the origin for this client alone, because no response is known that requests with its
    /// credentials may share.
    Unshared,
    /// Around the store: the key is known to be uncacheable, for this reason.
    HitForMiss(UncacheableReason),
    /// Around the store: it waited too long.
    WaitTimeout,
    /// Around the store, which has no room for the response.
    NoRoom,
    /// Around the store: it is a range, and no other request would share the fill.
    UnsharedRange,
    /// Around the store: it needs only a part of the object, and the budget allows no further fill that no client
    /// reads.
    Unfilled,
    /// Around the store: it is a range that begins far ahead of the fill.
    Ahead,
    /// Like a new request: under the key of its variant, or because it was too late to share a validation.
    Varies,
    /// Nowhere: it was to be the leader for other requests, which no longer need one.
    Unneeded,
}
