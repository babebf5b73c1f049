// SPDX-License-Identifier: Apache-2.0
//! HEADs, before they may take part: whether the store has the object, or only its headers are shared.

use sluice_core::coalescing::{Probed, Release};
use sluice_core::key::CanonicalTarget;
use sluice_core::workers::KeyHash;

use super::Worker;
use crate::answer::EXPIRED;
use crate::calls::Call;
use crate::host;
use crate::response;
use crate::stream::Preparation;

/// What the store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// A response that it serves as it is.
    Served,
    /// One that the origin has to be asked about.
    Expired,
    /// Nothing that would help.
    Nothing,
}

impl Worker {
    /// Turns a HEAD to the headers alone where this worker knows of them, and of nothing more.
    pub fn turn_to_headers(&mut self, target: &mut CanonicalTarget) {
        let headers = target.for_headers();
        let now = host::monotonic_millis();
        let whole = self.key_hash(target.cache_key());
        let part = self.key_hash(headers.cache_key());
        let coalescer = &mut self.coalescer;
        let has_whole =
            coalescer.remembered(whole, now).is_some() || coalescer.is_committing(whole);
        if !has_whole && coalescer.knows(part, now) {
            *target = headers;
        }
    }

    /// The store has answered a look, or has not in time: those who wait for it go on.
    pub(super) fn looked(&mut self, key: KeyHash, answered: bool) {
        let seen = if answered { seen() } else { Seen::Nothing };
        for id in self.unprepared.remove(&Call::Look(key)).unwrap_or_default() {
            let Some(stream) = self.stream(id) else {
                continue;
            };
            let release = match seen {
                Seen::Nothing => Release::Varies,
                Seen::Served if !self.must_revalidate(&stream) => {
                    stream.preparation.set(Preparation::Done);
                    Release::Alone
                }
                Seen::Served | Seen::Expired => Release::Alone,
            };
            self.due_resumes.push_back((id, release));
        }
        self.wake_root();
    }
}

fn seen() -> Seen {
    if matches!(response::probed(0, |_| false), Probed::Readable { .. }) {
        return Seen::Served;
    }
    if response::has_told(EXPIRED) {
        Seen::Expired
    } else {
        Seen::Nothing
    }
}
