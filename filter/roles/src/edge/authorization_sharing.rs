// SPDX-License-Identifier: Apache-2.0
//! Requests with `Authorization` (RFC 9111, 3.5). They use the store only for responses that the origin allows all of
//! them to share.

use crate::worker::keys::Keys;
use crate::worker::own_requests::calls::Calls;
use sluice_core::coalescing::NextStep;
use sluice_core::freshness::UncacheableReason;
use sluice_core::http::caching::client_control::ClientDemand;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::internal_headers::AUTHORIZATION_HEADER;
use sluice_core::key::CanonicalTarget;

use crate::request::EdgeRequest;
use crate::worker::keys::AuthorizedSharing;
use crate::worker::own_requests::background;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// The credentials of a request, if they can be hidden from the store. `demands` says that the request has a range or
/// conditions.
pub fn credentials_to_hide<'a>(
    keys: &mut Keys,
    target: &CanonicalTarget,
    headers: &'a Headers,
    way: &ClientDemand,
    demands: bool,
) -> Option<FieldValue<'a>> {
    let mut lines = headers.iter().filter(|(name, _)| *name == "authorization");
    let first = lines.next().map(|(_, value)| FieldValue::new(value));
    let one = first.filter(|_| lines.next().is_none());
    // The fill for a client that needs less than the object runs in the background, and has no credentials.
    let in_background = demands && matches!(way, ClientDemand::Checked(_));
    one.filter(|_| !in_background && !keys.varies_with_credentials(target))
}

/// Hides the credentials from the store, because the store would not cache a request with them.
pub fn hide(host: &dyn Host, credentials: FieldValue<'_>) -> host::Result<()> {
    host.set_header(Map::Request, AUTHORIZATION_HEADER, credentials)
}

/// The next step of a request that looks for a response which it may share, or `None` if it waits for the lookup.
pub fn look(keys: &mut Keys, calls: &mut Calls, stream: &EdgeRequest) -> Option<NextStep> {
    match keys.authorized_sharing(stream.key.key) {
        Some(AuthorizedSharing::Client { .. }) => {
            Some(NextStep::HitForMiss(UncacheableReason::Authorization))
        }
        _ => background::look_for_authenticated(calls, stream),
    }
}

/// Whether a request may wait for others and lead them.
pub fn takes_part(keys: &mut Keys, stream: &EdgeRequest) -> bool {
    !stream.authenticated
        || (stream.demand.is_none()
            && keys.authorized_sharing(stream.key.key) == Some(AuthorizedSharing::All))
}
