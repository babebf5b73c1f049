// SPDX-License-Identifier: Apache-2.0
//! Fills that no client reads: background fills, and those of clients that need less than half of the object.

use sluice_core::coalescing::beside::unread::UnreadFill;
use sluice_core::http::conditional::demand::Demand;
use sluice_core::http::conditional::range::Part;
use sluice_core::policy::Policy;

use crate::request::EdgeRequest;
use crate::request::call_kind::CallKind;
use crate::worker::own_requests::calls::Calls;

/// Whether a call may be made for a request. A fill counts against the bounds from here on. A question for a size
/// needs room because it would lead to a fill.
pub fn may_call(calls: &mut Calls, stream: &EdgeRequest, call: CallKind) -> bool {
    let (policy, now) = (&stream.policy.policy, calls.host.monotonic_millis());
    match call {
        CallKind::Fill(key) => calls
            .unread
            .begin(UnreadFill::Background(key), policy, None, now),
        CallKind::Size(_) | CallKind::Index(_) => {
            let demand = stream.demand.as_ref();
            let reads = demand.is_none_or(Demand::reads_to_the_end);
            reads || calls.unread.has_room(policy, Some(1), now)
        }
        _ => true,
    }
}

/// Whether a range of an object of that length may lead. Its fill counts against the bounds from here on, unless the
/// client reads half of the object or more.
pub fn may_lead(calls: &mut Calls, stream: &EdgeRequest, length: Option<u64>) -> bool {
    let (policy, now) = (&stream.policy.policy, calls.host.monotonic_millis());
    let fill = UnreadFill::Client(stream.id);
    let bytes = match length {
        Some(length) => match part_unread(stream, length) {
            0 => return true,
            bytes => Some(bytes),
        },
        None => None,
    };
    calls.unread.begin(fill, policy, bytes, now)
}

/// Whether a request with this demand may lead itself. Its answer may be a 412, which leaves the fill unread.
pub fn has_room_for(calls: &mut Calls, policy: &Policy, demand: &Demand) -> bool {
    let leads = !demand.may_be_bodiless() || demand.may_be_unchanged();
    leads || {
        let now = calls.host.monotonic_millis();
        calls.unread.has_room(policy, None, now)
    }
}

/// Counts the fill of a leader against the bounds if its answer may be a 304 or a 412.
pub fn lead(calls: &mut Calls, stream: &EdgeRequest) {
    if stream.may_be_bodiless() {
        let (policy, now) = (&stream.policy.policy, calls.host.monotonic_millis());
        let fill = UnreadFill::Client(stream.id);
        calls.unread.begin(fill, policy, None, now);
    }
}

/// Takes back the count of a range that does not lead after all.
pub fn leads_not(calls: &mut Calls, stream: &EdgeRequest) {
    calls.unread.end(UnreadFill::Client(stream.id));
}

/// Takes back the count of a request that has ended.
pub fn end(calls: &mut Calls, stream: &EdgeRequest) {
    calls.unread.end(fill_of(stream));
}

/// Corrects the count of a fill by the length in its response headers.
pub fn learn(calls: &mut Calls, stream: &EdgeRequest, length: Option<u64>) {
    let length = length.unwrap_or(stream.policy.policy.cache.max_object_bytes);
    let bytes = match stream.body.passing.get().part {
        _ if stream.for_others => length,
        Part::Whole => 0,
        Part::Slice(_) => part_unread(stream, length),
        Part::Nothing => length,
    };
    // The fetch of a written object has separate bounds.
    if stream.head || stream.is_for_created {
        return;
    }
    match bytes {
        0 => calls.unread.end(fill_of(stream)),
        bytes => calls.unread.learn(fill_of(stream), bytes),
    }
}

/// The number of bytes of an object of that length outside of the client's range, or 0 if the range has half of the
/// bytes or more.
fn part_unread(stream: &EdgeRequest, length: u64) -> u64 {
    let demand = stream.demand.as_ref();
    let left_out = demand.map_or(0, |demand| demand.leaves_out(length));
    if left_out > length / 2 { left_out } else { 0 }
}

const fn fill_of(stream: &EdgeRequest) -> UnreadFill {
    if stream.for_others {
        UnreadFill::Background(stream.key.key)
    } else {
        UnreadFill::Client(stream.id)
    }
}
