// SPDX-License-Identifier: Apache-2.0
//! The requests of this worker that are on their way to the origin through the store.

use std::collections::HashMap;
use std::rc::Rc;

use sluice_core::board::Millis;
use sluice_core::flight::StreamId;

use crate::revalidation::Revalidation;

/// A request of ORIGIN.
#[derive(Clone, Debug)]
struct Fill {
    context: u32,
    begun: Millis,
    /// Until the response headers have come.
    fallback: Option<Fallback>,
    /// The fallback has taken the place of the origin's answer.
    given_up: bool,
}

/// What the store serves if the origin does not answer in time.
#[derive(Clone, Debug)]
pub struct Fallback {
    /// The stored response.
    pub revalidation: Rc<Revalidation>,
    /// How long the origin may take to begin its answer.
    pub patience: Millis,
}

/// A fill whose origin takes longer to begin its answer than those who wait are asked to. (An origin that is
/// silent where nothing can be served in its place is Envoy's to give up.)
#[derive(Clone, Debug)]
pub struct Overdue {
    /// The request of EDGE that caused it.
    pub stream: StreamId,
    /// ORIGIN's context.
    pub context: u32,
    /// What the store serves in place of the answer.
    pub revalidation: Rc<Revalidation>,
}

/// The fills, by the request of EDGE that caused each.
#[derive(Debug, Default)]
pub struct Fills {
    fills: HashMap<StreamId, Fill>,
}

impl Fills {
    /// A request goes to the origin.
    pub fn begin(
        &mut self,
        stream: StreamId,
        context: u32,
        fallback: Option<Fallback>,
        now: Millis,
    ) {
        self.fills.insert(
            stream,
            Fill {
                context,
                begun: now,
                fallback,
                given_up: false,
            },
        );
    }

    /// Its response headers have come. True if the fallback has taken their place.
    pub fn answer(&mut self, stream: StreamId) -> bool {
        self.fills.get_mut(&stream).is_some_and(|fill| {
            fill.fallback = None;
            fill.given_up
        })
    }

    /// ORIGIN's context has gone. False if another has taken its place, or its fallback has.
    pub fn end(&mut self, stream: StreamId, context: u32) -> bool {
        if self.context(stream) != Some(context) {
            return false;
        }
        self.fills
            .remove(&stream)
            .is_some_and(|fill| !fill.given_up)
    }

    /// ORIGIN's context of the fill.
    pub fn context(&self, stream: StreamId) -> Option<u32> {
        self.fills.get(&stream).map(|fill| fill.context)
    }

    /// Whether there is nothing to watch.
    pub fn is_empty(&self) -> bool {
        self.fills.is_empty()
    }

    /// The shortest time that an origin has to begin its answer.
    pub fn patience(&self) -> Option<Millis> {
        let fallbacks = self
            .fills
            .values()
            .filter_map(|fill| fill.fallback.as_ref());
        fallbacks.map(|fallback| fallback.patience).min()
    }

    /// Those whose origin has not answered in time, each named once.
    pub fn overdue(&mut self, now: Millis) -> Vec<Overdue> {
        let mut overdue = Vec::new();
        for (stream, fill) in &mut self.fills {
            let begun = fill.begun;
            let due = |fallback: &mut Fallback| begun.saturating_add(fallback.patience) <= now;
            if let Some(fallback) = fill.fallback.take_if(due) {
                fill.given_up = true;
                overdue.push(Overdue {
                    stream: *stream,
                    context: fill.context,
                    revalidation: fallback.revalidation,
                });
            }
        }
        overdue
    }
}
