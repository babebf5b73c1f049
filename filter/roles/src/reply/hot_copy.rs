// SPDX-License-Identifier: Apache-2.0
//! Replies from the worker's memory.

use sluice_core::hot::HotCopy;
use sluice_core::http::conditional::demand::Demand;

use super::CACHE_STATUS;
use super::delivery::answer_with;
use crate::request::EdgeRequest;
use sluice_host::headers::{Headers, extend};
use sluice_host::{self as host, Host};

/// Answers the effective context's request with `copy`, which is `age` seconds old. `status` is its member of
/// `Cache-Status`.
pub fn answer(
    host: &dyn Host,
    copy: &HotCopy,
    age: u64,
    status: &str,
    demand: Option<&Demand>,
    head: bool,
) -> host::Result<()> {
    let age = age.to_string();
    let own = [("age", age.as_bytes()), (CACHE_STATUS, status.as_bytes())];
    let own = own.into_iter().skip(usize::from(!copy.aged));
    let headers = Headers::new(extend(&copy.headers, own));
    answer_with(host, demand, head, copy.status, &headers, &copy.body)
}

/// Answers the effective context's request, a follower that has waited for this response. `status` is its member of
/// `Cache-Status`.
pub fn answer_follower(
    host: &dyn Host,
    copy: &HotCopy,
    follower: &EdgeRequest,
    status: &str,
) -> host::Result<()> {
    follower.progress.answered_untyped.set(!copy.typed);
    let demand = follower.demand.as_ref();
    answer(host, copy, copy.sighting.age, status, demand, follower.head)
}
