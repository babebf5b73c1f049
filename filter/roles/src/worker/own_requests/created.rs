// SPDX-License-Identifier: Apache-2.0
//! Objects that a bucket says to be written, and that the edge fetches once, as a client without credentials.

use std::rc::Rc;

use sluice_core::metrics::Metric;
use sluice_core::policy::purge::OnCreatedPolicy;
use sluice_core::purge::{CreatedObject, take_created};

use crate::request::call_kind::CallKind;
use crate::request::policy::{Generation, NumberedPolicy};
use crate::worker::own_requests::calls::{BackgroundCall, Calls};

/// The codings that clients accept, as most browsers do.
const ACCEPT_ENCODING: &[u8] = b"gzip, deflate, br, zstd";

/// Queues the requests for objects, within the bounds of `purge.on_created`. The worker that has received the
/// notification makes them, and no other worker.
pub fn fetch(calls: &mut Calls, generation: &Generation, objects: Vec<CreatedObject>) {
    let policy = generation.sites.edge.purge.on_created.as_ref();
    let Some(policy) = policy.filter(|policy| policy.fetch) else {
        return;
    };
    for object in objects {
        let Some(site) = generation.policy(object.site) else {
            continue;
        };
        if site.policy.access.is_some() {
            // A client without credentials gets nothing there.
            continue;
        }
        if !fits(calls, policy, site, object.bytes) {
            calls.metrics.count(Metric::CreatedSkipped, 1);
            continue;
        }
        let call = BackgroundCall::new(CallKind::Created, Rc::new(object.target), site.clone());
        calls.queue_created(BackgroundCall {
            headers: vec![("accept-encoding".to_owned(), ACCEPT_ENCODING.to_vec())],
            ..call
        });
    }
}

/// Whether an object can be stored as a whole, and is within the bounds, from which it is taken.
fn fits(
    calls: &Calls,
    policy: &OnCreatedPolicy,
    site: &NumberedPolicy,
    bytes: Option<u64>,
) -> bool {
    let most = site.policy.cache.max_object_bytes;
    let bytes = bytes.unwrap_or(most);
    let now = calls.host.monotonic_millis();
    bytes <= most
        && take_created(&*calls.host, policy, bytes, now).unwrap_or_else(|error| {
            let consequence = "a written object is not fetched";
            calls.metrics.fault(consequence, error.into());
            false
        })
}
