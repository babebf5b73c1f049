// SPDX-License-Identifier: Apache-2.0
//! The judgement of ages: a response is served for its lifetime and its windows after the origin has sent or confirmed
//! it, whatever time the origin's clock says.

use super::super::clock::Moment;
use super::super::fetches::Fetch;
use super::super::object::Kind;
use super::{Case, Complaint, ROUNDING, wrong};
use crate::http::http_date;

impl Case<'_> {
    /// Checks that the origin has sent or confirmed the version lately, and that `Date` and `Age` are true.
    pub(super) fn freshness(&self) -> Result<(), Complaint> {
        let object = self.object();
        let tag = self.answer.headers.get("etag");
        let tag = tag.and_then(|tag| tag.trim_matches('"').parse().ok());
        let Some(version) = self.version().ok().or(tag) else {
            return Ok(());
        };
        if !object.kind.is_shared() {
            return Ok(());
        }
        let since = self.earliest();
        let is_of = |fetch: &Fetch| {
            let variant = object.kind != Kind::Varying || fetch.variant == self.ask.variant;
            fetch.version == version && variant
        };
        let fetches = &self.world.shelf.fetches;
        if !fetches.any(self.ask.object, since, is_of) {
            return Err(wrong(format!(
                "not sent or confirmed since {:.3} s",
                since.as_secs_f64()
            )));
        }
        let date = self.answer.headers.get("date");
        let says = |fetch: &Fetch| is_of(fetch) && Some(http_date(fetch.date).as_str()) == date;
        if !self.is_own_date(date) && !fetches.any(self.ask.object, since, says) {
            return Err(wrong(format!("the origin has not sent the date {date:?}")));
        }
        let age = self.answer.headers.number("age").unwrap_or(0);
        let most = self.answer.ended - since;
        if age as u64 > most.as_secs() {
            return Err(wrong(format!("an age of {age} s, not of {most:?} or less")));
        }
        Ok(())
    }

    /// Whether the edge has sent the response at this date by its own clock.
    fn is_own_date(&self, date: Option<&str>) -> bool {
        let date = date.and_then(|date| httpdate::parse_http_date(date).ok());
        let clock = self.world.shelf.clock;
        let [first, last] = [
            self.answer.asked.saturating_sub(ROUNDING),
            self.answer.ended,
        ];
        let times = clock.date(first)..=clock.date(last);
        let is_own = date.is_some_and(|date| times.contains(&date));
        if is_own {
            self.world
                .ledger
                .count("responses with a date of the edge's clock, or the same");
        }
        is_own
    }

    /// The earliest moment at which the origin may have sent or confirmed a response that is served for this request.
    fn earliest(&self) -> Moment {
        let (object, asked) = (self.object(), self.answer.asked);
        let since = asked.saturating_sub(object.reach() + object.fill_time() + ROUNDING);
        since.saturating_sub(self.world.stalls.total(since, asked))
    }
}
