// SPDX-License-Identifier: Apache-2.0
//! The bounds on headers, on each part of a message's way. Each is the one before it, and what is added in between, so
//! that the first part decides: Envoy does not survive a response out of its cache that a later part refuses.

use minijinja::{Value, context};
use sluice_core::http::header_bound::{HOP_ADDS, HeaderBound, RESPONSE};

/// The most lines of a client's request.
const REQUEST_LINES: u32 = 100;
/// The most that EDGE, Envoy's cache and the router add to a request, once on its way to the hop and once more where the
/// request comes back to EDGE: links, the URL in several spellings, the condition by which a stored response is validated.
const EDGE_ADDS: HeaderBound = HeaderBound {
    lines: 32,
    kib: 2 * RESPONSE.kib,
};
/// The most that ORIGIN and EDGE add to a response: the key, copies of fields that the store sees otherwise, and the
/// headers of a rule.
const ROLES_ADD: HeaderBound = HeaderBound {
    lines: 256,
    kib: 2 * RESPONSE.kib,
};

/// The bounds for the templates, where a client's request may have headers of `client_kib` KiB.
pub fn header_bounds(client_kib: u32) -> Value {
    let client = HeaderBound {
        lines: REQUEST_LINES,
        kib: client_kib,
    };
    let server = RESPONSE.by_bytes();
    let hop = server.plus(HOP_ADDS);
    context! {
        // Requests, in the order in which they pass: the listeners for clients, then those inside.
        client => values(client),
        inside => values(client.plus(EDGE_ADDS)),
        // The edge's own words to a client whose request has more.
        refusal => format!(
            "The request has more headers than the edge takes: {REQUEST_LINES} lines, {client_kib} KiB with the URL.\n"
        ),
        // Responses: an origin's server, the cluster before the hop, the cluster of the background listener.
        server => values(server),
        origin => values(hop),
        background => values(hop.plus(ROLES_ADD)),
    }
}

fn values(bound: HeaderBound) -> Value {
    context! { lines => bound.lines, kib => bound.kib }
}
