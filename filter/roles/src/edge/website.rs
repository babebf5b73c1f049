// SPDX-License-Identifier: Apache-2.0
//! Missing objects and other errors of a web site: redirects to directories, fallback documents and error pages.
//!
//! No filter can look up another object after a response has begun. Therefore the first request that finds a missing
//! object is held at its response headers while the filter fetches the substitute by a call. The response is then
//! changed in place. For a moment after that, requests ask for the substitute from the start.

use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use crate::worker::metrics::Metrics;
use crate::worker::own_requests::calls::Calls;
use std::rc::Rc;

use sluice_core::coalescing::SMALL_BYTES;
use sluice_core::http::caching::cache_status::detailed;
use sluice_core::http::conditional::range::Part;
use sluice_core::key::CanonicalTarget;
use sluice_core::metrics::Metric;
use sluice_core::policy::Policy;
use sluice_core::website::{DIRECTORY_STATUS, MissingObjectVisit, Substitute};
use sluice_core::workers::Millis;

use crate::reply::CACHE_STATUS;
use crate::reply::substitute::FailedResponse;
use crate::request::EdgeRequest;
use crate::request::policy::NumberedPolicy;
use crate::request::stand_in::StandIn;
use crate::worker::keys::MissingObject;
use crate::worker::own_requests::substitutes;
use sluice_host::{self as host, Host, Map};

/// How long a missing object is remembered, which is also how long an upload can stay invisible.
const KNOWN_MILLIS: Millis = 1_000;

/// The destination of a visitor's request.
#[derive(Debug)]
pub enum Destination {
    /// The object that it names.
    Requested,
    /// A directory, with the value of `Location`.
    Redirect(String),
    /// A document that replaces the object.
    Document(StandIn, CanonicalTarget),
}

/// The destination of a visitor's request, by what is known of the object.
pub fn destination(
    keys: &Keys,
    policy: &Policy,
    visit: &MissingObjectVisit,
    target: &CanonicalTarget,
) -> Destination {
    match keys.missing_object(target.url()) {
        None => Destination::Requested,
        Some(MissingObject::Directory) => match visit.location() {
            Some(location) => Destination::Redirect(location.to_owned()),
            None => Destination::Requested,
        },
        Some(MissingObject::Missing(missing)) => {
            // Such an object was found to have no listing either.
            let tried = Some(Substitute::Listing);
            match visit.next_document(policy, target, missing, tried) {
                None => Destination::Requested,
                Some((substitute, document)) => {
                    let stand_in = StandIn {
                        substitute,
                        missing,
                    };
                    Destination::Document(stand_in, document)
                }
            }
        }
    }
}

/// Redirects a request to a directory.
pub fn answer_redirect(
    host: &dyn Host,
    metrics: &Metrics,
    identity: &Identity,
    policy: &NumberedPolicy,
    location: &str,
) -> host::Result<()> {
    metrics.count_of(policy, Metric::RequestsSubstituted);
    let cache_status = detailed(&identity.name, "directory");
    let headers = [
        ("location", location),
        (CACHE_STATUS, cache_status.as_str()),
    ];
    host.respond(DIRECTORY_STATUS, "sluice_directory", &headers, "")
}

/// Holds a response with an error's `status` until its substitute has arrived. Returns true if it waits. `known_for` is
/// how long a missing object is known to be missing, in milliseconds.
pub fn hold_for_substitute(
    host: &dyn Host,
    keys: &Keys,
    calls: &mut Calls,
    stream: &Rc<EdgeRequest>,
    status: u16,
    known_for: Millis,
) -> host::Result<bool> {
    let policy = &stream.policy.policy;
    let missing = policy.website.is_missing(status);
    if stream.visit.is_some() && missing && policy.website.varies_by_accept() {
        host.add_header(Map::Response, "vary", "Accept")?;
    }
    let response = FailedResponse {
        status,
        known_for: if missing {
            known_for.min(KNOWN_MILLIS)
        } else {
            0
        },
        is_dropped: false,
    };
    let waits = substitutes::look_for_substitute(keys, calls, stream, response, None);
    if waits {
        stream.body.hold();
    }
    Ok(waits)
}

/// Prevents the collection of a document that is too large for a call. `status` reports that to the call.
pub fn bound_document(host: &dyn Host, stream: &EdgeRequest, status: u16) -> host::Result<()> {
    let length = host.header_number(Map::Response, "content-length")?;
    if length.is_some_and(|length| length > SMALL_BYTES) {
        host.set_header(Map::Response, ":status", status.to_string())?;
        host.remove_header(Map::Response, "content-length")?;
        stream.body.pass_only(Part::Nothing);
    }
    Ok(())
}
