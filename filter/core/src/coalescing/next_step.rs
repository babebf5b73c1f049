// SPDX-License-Identifier: Apache-2.0
//! How a request goes on, at once or after it has waited.

use crate::freshness::UncacheableReason;

/// How a request goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// To the store, which is believed to have a fresh response.
    Fresh,
    /// To the store, to fetch on behalf of all who wait.
    Lead,
    /// To the store, where the response is that it has waited for.
    Collapsed,
    /// To the store, where the response is that was validated while it waited.
    Validated,
    /// To the store, without waiting for or leading anyone: a bound was reached, the board is out of use, or the request
    /// cannot fill the store.
    Alone,
    /// To the store, which asks the origin for its client alone: nothing is known that requests with its credentials
    /// share.
    Unshared,
    /// Around the store: its key is known to be uncacheable, for this reason.
    HitForMiss(UncacheableReason),
    /// Around the store: it waited too long.
    WaitTimeout,
    /// Around the store, which has no room for the response.
    NoRoom,
    /// Around the store: it is a range, and nobody would share the fill.
    UnsharedRange,
    /// Around the store: it needs less than the object, and no fill begins that no client reads.
    Unfilled,
    /// Around the store: it is a range that begins far ahead of the fill.
    Ahead,
    /// As if it had just come, under the key of its own variant, or because it came too late to share a validation.
    Varies,
    /// Nowhere: it was to lead for others, who have what they need or go on by themselves.
    Unneeded,
}
