// SPDX-License-Identifier: Apache-2.0
//! Whether the store has room. Envoy's configuration has a route for the time when it has none, and a request of EDGE's
//! sees which one it has.

use sluice_core::workers::Millis;

use sluice_host::{self as host, Host};

/// What ends the name of the route that requests have while the store has no room.
const NO_ROOM: &[u8] = b"+no_room";
/// For how long a look counts for the requests that follow it.
const LOOK_MILLIS: Millis = 250;

/// What a worker knows of the store's room.
#[derive(Debug, Default)]
pub struct Room {
    lacking: bool,
    /// When it was last looked for.
    looked: Option<Millis>,
}

impl Room {
    /// Looks, by the route of the effective context's request, unless the last look still counts at `now`.
    pub fn look(&mut self, host: &dyn Host, now: Millis) -> host::Result<()> {
        let counts = |looked: Millis| now < looked.saturating_add(LOOK_MILLIS);
        if self.looked.is_some_and(counts) {
            return Ok(());
        }
        self.look_anew(host, now)
    }

    /// Looks, however short a time ago the last look was.
    pub fn look_anew(&mut self, host: &dyn Host, now: Millis) -> host::Result<()> {
        let route = host.property("xds\0route_name")?;
        self.lacking = route.is_some_and(|name| name.ends_with(NO_ROOM));
        self.looked = Some(now);
        Ok(())
    }

    /// Whether the store has none.
    pub const fn is_lacking(&self) -> bool {
        self.lacking
    }
}

/// The name of a route without what tells of the store's room.
pub(crate) fn named_route(name: &[u8]) -> &[u8] {
    name.strip_suffix(NO_ROOM).unwrap_or(name)
}
