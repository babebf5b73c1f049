// SPDX-License-Identifier: Apache-2.0
//! The requests of this worker that are on their way to the origin through the store.

use std::collections::HashMap;

use sluice_core::board::Millis;
use sluice_core::flight::StreamId;

/// How long the origin may be silent. Envoy's own timeouts do not reach the requests of its cache
/// filters, and on v2 everyone would go on joining a fill that never ends. The route has the same limit
/// for what goes around the cache.
const ORIGIN_IDLE_MILLIS: Millis = 60_000;

/// A request of ORIGIN.
#[derive(Clone, Copy, Debug)]
struct Fill {
    context: u32,
    answered: bool,
    progress: Millis,
}

/// A fill whose origin has been silent for too long.
#[derive(Clone, Copy, Debug)]
pub struct Stalled {
    /// ORIGIN's context.
    pub context: u32,
    /// Whether the response headers have come.
    pub answered: bool,
}

/// The fills, by the request of EDGE that caused each.
#[derive(Debug, Default)]
pub struct Fills {
    fills: HashMap<StreamId, Fill>,
}

impl Fills {
    /// A request goes to the origin.
    pub fn begin(&mut self, stream: StreamId, context: u32, now: Millis) {
        self.fills.insert(
            stream,
            Fill {
                context,
                answered: false,
                progress: now,
            },
        );
    }

    /// Its response headers have come.
    pub fn answer(&mut self, stream: StreamId, now: Millis) {
        if let Some(fill) = self.fills.get_mut(&stream) {
            fill.answered = true;
            fill.progress = now;
        }
    }

    /// More of its body has come.
    pub fn progress(&mut self, stream: StreamId, now: Millis) {
        if let Some(fill) = self.fills.get_mut(&stream) {
            fill.progress = now;
        }
    }

    /// ORIGIN's context has gone. False if another has taken its place.
    pub fn end(&mut self, stream: StreamId, context: u32) -> bool {
        let ends = self.context(stream) == Some(context);
        if ends {
            self.fills.remove(&stream);
        }
        ends
    }

    /// ORIGIN's context of the fill.
    pub fn context(&self, stream: StreamId) -> Option<u32> {
        self.fills.get(&stream).map(|fill| fill.context)
    }

    /// Whether there is nothing to watch.
    pub fn is_empty(&self) -> bool {
        self.fills.is_empty()
    }

    /// Those whose origin has been silent for too long, each named once.
    pub fn stalled(&mut self, now: Millis) -> Vec<Stalled> {
        let silent = |fill: &&mut Fill| fill.progress.saturating_add(ORIGIN_IDLE_MILLIS) <= now;
        self.fills
            .values_mut()
            .filter(silent)
            .map(|fill| {
                fill.progress = now;
                Stalled {
                    context: fill.context,
                    answered: fill.answered,
                }
            })
            .collect()
    }
}
