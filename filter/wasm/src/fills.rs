// SPDX-License-Identifier: Apache-2.0
//! The requests of this worker that are on their way to the origin through the store.

use std::collections::HashMap;
use std::rc::Rc;

use sluice_core::workers::Millis;
use sluice_core::workers::StreamId;

use crate::revalidation::Revalidation;

/// Timer period while only the origin is waited for, however long it may take.
const LONGEST_WATCH_MILLIS: Millis = 1_000;
const SHORTEST_WATCH_MILLIS: Millis = 50;

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
    /// The shortest time that an origin had to begin its answer, when those that are overdue were last looked for or
    /// since.
    patience: Option<Millis>,
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
        let patience = fallback.as_ref().map(|fallback| fallback.patience);
        self.patience = [self.patience, patience].into_iter().flatten().min();
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

    /// The timer period in which [`Fills::overdue`] is wanted.
    pub fn tick_period(&self) -> Option<Millis> {
        let patience = self.patience?;
        Some(patience.clamp(SHORTEST_WATCH_MILLIS, LONGEST_WATCH_MILLIS))
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
        let fallbacks = self
            .fills
            .values()
            .filter_map(|fill| fill.fallback.as_ref());
        self.patience = fallbacks.map(|fallback| fallback.patience).min();
        overdue
    }
}
