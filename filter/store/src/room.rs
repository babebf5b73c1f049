// SPDX-License-Identifier: Apache-2.0
//! The store's room for new entries. Envoy's configuration has a separate route for the time without room, and EDGE
//! reads the name of its request's route.

use sluice_core::workers::Millis;

use sluice_host::{self as host, Host};

/// Suffix of the name of the route that requests have while the store has no room.
const NO_ROOM: &[u8] = b"+no_room";
/// How long a result is used for later requests.
const LOOK_MILLIS: Millis = 250;

/// Room of the store, as known to a worker.
#[derive(Debug, Default)]
pub struct Room {
    lacking: bool,
    /// Time of the last check.
    looked: Option<Millis>,
}

impl Room {
    /// Checks for room by the route of the effective context's request, unless the last result is still valid at
    /// `now`.
    pub fn look(&mut self, host: &dyn Host, now: Millis) -> host::Result<()> {
        let counts = |looked: Millis| now < looked.saturating_add(LOOK_MILLIS);
        if self.looked.is_some_and(counts) {
            return Ok(());
        }
        self.look_anew(host, now)
    }

    /// Checks for room, even if the last check was a moment ago.
    pub fn look_anew(&mut self, host: &dyn Host, now: Millis) -> host::Result<()> {
        let route = host.property("xds\0route_name")?;
        self.lacking = route.is_some_and(|name| name.ends_with(NO_ROOM));
        self.looked = Some(now);
        Ok(())
    }

    /// Whether the store has no room.
    pub const fn is_lacking(&self) -> bool {
        self.lacking
    }
}

/// Returns the name of a route without the suffix for a store without room.
pub(crate) fn named_route(name: &[u8]) -> &[u8] {
    name.strip_suffix(NO_ROOM).unwrap_or(name)
}
