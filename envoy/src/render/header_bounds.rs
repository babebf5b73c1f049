// SPDX-License-Identifier: Apache-2.0
//! The bounds on headers at each stage of a message's way. Each bound is the bound of the stage in front of it plus
//! the headers that are added in between. So only the first stage refuses a message. This matters because Envoy
//! crashes if a later stage refuses a response from its cache.

use minijinja::{Value, context};
use sluice_core::http::header_bound::{HOP_ADDS, HeaderBound, RESPONSE};

/// Bound on the header lines of a client's request.
const REQUEST_LINES: u32 = 100;
/// Bound on the headers that EDGE, Envoy's cache and the router add to a request, on its way to the hop and once
/// more if the request returns to EDGE: links, the URL in several spellings, and the condition that validates a
/// stored response.
const EDGE_ADDS: HeaderBound = HeaderBound {
    lines: 32,
    kib: 2 * RESPONSE.kib,
};
/// Bound on the headers that ORIGIN and EDGE add to a response: the key, copies of fields that the store gets in
/// another form, and the headers of a rule.
const ROLES_ADD: HeaderBound = HeaderBound {
    lines: 256,
    kib: 2 * RESPONSE.kib,
};

/// The bounds for the templates, if a client's request may have `client_kib` KiB of headers.
pub fn header_bounds(client_kib: u32) -> Value {
    let client = HeaderBound {
        lines: REQUEST_LINES,
        kib: client_kib,
    };
    let server = RESPONSE.by_bytes();
    let hop = server.plus(HOP_ADDS);
    context! {
        // Requests, in the order of their way: the listeners for clients, then the internal listeners.
        client => values(client),
        inside => values(client.plus(EDGE_ADDS)),
        // The edge's answer to a client whose request exceeds the bound.
        refusal => format!(
            "The request has more headers than the edge takes: {REQUEST_LINES} lines, {client_kib} KiB with the URL.\n"
        ),
        // Responses: the server of the origin, the cluster in front of the hop, the cluster of the background
        // listener.
        server => values(server),
        origin => values(hop),
        background => values(hop.plus(ROLES_ADD)),
    }
}

fn values(bound: HeaderBound) -> Value {
    context! { lines => bound.lines, kib => bound.kib }
}
