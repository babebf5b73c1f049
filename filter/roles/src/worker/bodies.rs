// SPDX-License-Identifier: Apache-2.0
//! Requests whose headers do not end them: EDGE waits for the first part of the body, which may be empty.

use crate::worker::coalescing::Coalescing;
use crate::worker::identity::Identity;
use crate::worker::roots::Roots;
use sluice_core::metrics::Metric;
use sluice_core::workers::{Millis, NumberMap, StreamId};
use sluice_host::Host;

use crate::reply::DueReply;
use crate::reply::complete_reply::CompleteReply;
use sluice_host::Half;

/// How long EDGE waits.
const BODY_MILLIS: Millis = 1_000;
/// Timer period while EDGE waits.
const WATCH_MILLIS: Millis = 100;

/// The handling of a request whose client sends no body in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Answers the request with 408.
    Refused,
    /// Lets the request continue unchanged, with whatever body follows.
    Passes,
}

#[derive(Clone, Copy, Debug)]
struct AwaitedBody {
    since: Millis,
    late: Late,
}

/// The requests for whose body EDGE waits.
#[derive(Debug, Default)]
pub struct AwaitedBodies {
    awaited: NumberMap<StreamId, AwaitedBody>,
}

impl AwaitedBodies {
    /// Ends the wait. Returns false if it has ended already.
    pub fn end(&mut self, stream: StreamId) -> bool {
        self.awaited.remove(&stream).is_some()
    }

    /// The timer period in which [`give_up_overdue`] must be called.
    pub fn tick_period(&self) -> Option<Millis> {
        (!self.awaited.is_empty()).then_some(WATCH_MILLIS)
    }

    fn take_overdue(&mut self, now: Millis) -> Vec<(StreamId, Late)> {
        let overdue = |_: &StreamId, body: &mut AwaitedBody| body.since + BODY_MILLIS <= now;
        let overdue = self.awaited.extract_if(overdue);
        overdue.map(|(stream, body)| (stream, body.late)).collect()
    }
}

/// Begins to wait for the body of a request.
pub fn begin(
    host: &dyn Host,
    bodies: &mut AwaitedBodies,
    roots: &mut Roots,
    stream: StreamId,
    late: Late,
) {
    let since = host.monotonic_millis();
    let body = AwaitedBody { since, late };
    bodies.awaited.insert(stream, body);
    roots.shorten_period(WATCH_MILLIS);
    roots.restore(stream.0);
}

/// Ends the waits that have lasted too long.
pub fn give_up_overdue(
    identity: &Identity,
    bodies: &mut AwaitedBodies,
    roots: &Roots,
    coalescing: &mut Coalescing,
) {
    let now = coalescing.now();
    for (stream, late) in bodies.take_overdue(now) {
        coalescing.metrics.count(Metric::BodiesOverdue, 1);
        match late {
            Late::Refused => {
                let timeout = CompleteReply::timeout(&identity.name);
                coalescing
                    .wakeups
                    .answer(stream.0, DueReply::Complete(timeout));
            }
            Late::Passes => {
                coalescing.metrics.count(Metric::RequestsPassed, 1);
                let resumed = roots
                    .act_as(stream.0)
                    .and_then(|host| host.resume(Half::Request));
                coalescing.metrics.check(resumed);
            }
        }
    }
    roots.restore(roots.serving());
}
