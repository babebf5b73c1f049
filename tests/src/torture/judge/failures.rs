// SPDX-License-Identifier: Apache-2.0
//! The judgement of responses that were cut, of errors, and of responses that are late.

use super::super::clock::Moment;
use super::super::fault::Fault;
use super::super::fetches::Fetch;
use super::super::ledger::Wrong;
use super::super::origin::FETCH;
use super::{Answer, Case, Complaint, ROUNDING};
use std::time::Duration;

/// Longest time for which a failure may be remembered: `cache.retry_interval` and half of it, and [`ROUNDING`].
const ERRORS: Duration = Duration::from_secs(5);
/// Longest time until the edge stops storing on a full disk.
const NOTICED: Duration = Duration::from_secs(1);
/// Number of changes of an object after which a client gets no further plan for its slices. The first plan may be
/// outdated already.
const RENEWALS: u64 = 2;

impl Case<'_> {
    /// Whether the response may be cut: the origin has cut a body of this object while the client was there, or the
    /// edge was killed, or the disk has just become full, or a slice may be missing.
    pub(super) fn may_be_cut(&self) -> bool {
        let answer = self.answer;
        self.is_down(answer.asked)
            || answer.status.is_some() && self.world.outages.touch(answer.asked, answer.ended)
            || answer.status.is_some() && self.needs_the_first(answer.asked)
            || answer.status.is_some()
                && self
                    .world
                    .full
                    .begun(answer.asked.saturating_sub(NOTICED), answer.ended)
            || answer.status.is_some()
                && self
                    .world
                    .shelf
                    .fetches
                    .failed(self.ask.object, answer.asked, |_, fault| fault.cuts())
            || answer.status.is_some() && (self.has_changed() || self.may_lack_a_slice())
    }

    /// Whether the client's edge was down since that time. If another edge was down, only responses that had begun are
    /// cut.
    fn is_down(&self, since: Moment) -> bool {
        let outages = self.world.outages.of(self.answer.edge);
        outages.touch(since, self.answer.ended)
    }

    /// Whether only the first origin could answer, and was down since that time: a part of one version is never put
    /// together from two servers.
    fn needs_the_first(&self, since: Moment) -> bool {
        let is_part = self.object().is_sliced() || self.ask.part.is_some();
        is_part && self.world.deaths.touch(since, self.answer.ended)
    }

    /// Whether the object is stored in slices and has another version than the response.
    fn has_changed(&self) -> bool {
        let replaced = self
            .version()
            .map(|version| self.object().replaced(version));
        self.object().is_sliced() && replaced.is_ok_and(|replaced| replaced <= self.answer.ended)
    }

    /// Whether the object is stored in slices and has changed so often that each plan for them was outdated.
    fn has_changed_too_often(&self) -> bool {
        let object = self.object();
        let [before, after] =
            [self.answer.asked, self.answer.ended].map(|moment| object.version(moment));
        object.is_sliced() && after.saturating_sub(before) >= RENEWALS
    }

    /// Whether the object is stored in slices and the origin has failed to send one of them lately.
    fn may_lack_a_slice(&self) -> bool {
        let since = self.answer.asked.saturating_sub(ERRORS);
        let fetches = &self.world.shelf.fetches;
        self.object().is_sliced() && fetches.failed(self.ask.object, since, |_, _| true)
    }

    /// Whether the response may be late: a worker stood still, the disk was full or the edge was down while the
    /// client waited, or just before.
    #[must_use]
    pub fn may_be_late(&self) -> bool {
        let Answer { asked, ended, .. } = *self.answer;
        let since = asked.saturating_sub(ROUNDING);
        let world = self.world;
        let reasons = [&world.stalls, &world.full];
        reasons.iter().any(|spans| spans.touch(since, ended)) || world.outages.touch(since, ended)
    }

    /// The counter of an excused cut.
    pub(super) fn excuse(&self) -> &'static str {
        let Answer { asked, ended, .. } = *self.answer;
        let cut = |_: &Fetch, fault: Fault| fault.cuts();
        if self.world.shelf.fetches.failed(self.ask.object, asked, cut) {
            "cut, as the origin has cut"
        } else if self.world.outages.touch(asked, ended) {
            "cut, as the edge was killed"
        } else if self.needs_the_first(asked) {
            "cut, as the first origin was down"
        } else if self.has_changed() {
            "cut, as the object has changed"
        } else if self.may_lack_a_slice() {
            "cut, as the origin has not sent a slice"
        } else {
            "cut, as the disk has become full"
        }
    }

    /// Whether the previous response on the connection was complete in front of its fill, which the origin has then
    /// cut, or a purge has overtaken.
    pub(super) fn follows_an_ended_fill(&self) -> bool {
        let (shelf, purges) = (&self.world.shelf, &self.world.purges);
        self.answer.after.is_some_and(|(object, status, at)| {
            let since = at.saturating_sub(NOTICED);
            let cut = || shelf.fetches.failed(object, since, |_, fault| fault.cuts());
            let path = &shelf.objects[object].path;
            matches!(status, 206 | 304)
                && (cut() || purges.between(path, since, self.answer.ended) > 0)
        })
    }

    pub(super) fn error(&self, status: u16) -> Result<&'static str, Complaint> {
        let asked = self.answer.asked;
        let stalled = self
            .world
            .stalls
            .total(asked.saturating_sub(2 * ERRORS), asked);
        let since = asked.saturating_sub(ERRORS + stalled);
        let own = self.answer.headers.number(FETCH);
        let explained = self
            .world
            .shelf
            .fetches
            .failed(self.ask.object, since, |_, fault| {
                fault == Fault::Error(status) || own.is_none() && status != 500
            });
        let down = self.is_down(since);
        if self.needs_the_first(since) {
            Ok("errors, as the first origin was down")
        } else if explained || down {
            Ok("errors that a fault explains")
        } else if status == 503 && self.has_changed_too_often() {
            Ok("errors, as the object has changed too often")
        } else {
            Err((Wrong::Cut, "an error without a reason".to_owned()))
        }
    }
}
