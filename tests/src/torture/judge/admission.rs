// SPDX-License-Identifier: Apache-2.0
//! The judgement of refusals by access rules, and of the generation of the edges' files.

use super::super::generations::{GENERATION, accepts};
use super::super::origin::{FETCH, VERSION};
use super::super::pass::Pass;
use super::{Case, Complaint, wrong};

/// The status of a refusal.
const REFUSED: u16 = 403;
/// The text of a refusal.
const TEXT: &[u8] = b"Access denied.\n";

impl Case<'_> {
    /// The counter of a right refusal; `None` for a response to a request that may be admitted.
    ///
    /// # Errors
    /// A request that must be refused was admitted, or one that must be admitted was refused.
    pub(super) fn admission(&self, status: u16) -> Result<Option<&'static str>, Complaint> {
        let (pass, answer) = (self.ask.pass, self.answer);
        if pass == Pass::Open {
            return Ok(None);
        }
        let generations = &self.world.generations;
        let possible = || generations.possible(answer.asked, answer.ended);
        let key = pass.key();
        let must_be_admitted = key.is_some_and(|key| possible().all(|of| accepts(of, key)));
        let may_be_admitted = key.is_some_and(|key| possible().any(|of| accepts(of, key)));
        match status {
            REFUSED if must_be_admitted => Err(wrong(format!(
                "a right request was refused in {:?}",
                possible()
            ))),
            REFUSED => self.refused(may_be_admitted).map(Some),
            500..=599 => Ok(None),
            _ if !may_be_admitted => Err(wrong(format!(
                "a wrong request was admitted in {:?}",
                possible()
            ))),
            _ => Ok(None),
        }
    }

    /// Checks that a refusal has nothing of the object.
    fn refused(&self, amid_a_reload: bool) -> Result<&'static str, Complaint> {
        let (headers, body) = (&self.answer.headers, &self.answer.body);
        let fields = [VERSION, FETCH, "etag", "last-modified"];
        let shows = fields.iter().any(|name| headers.get(name).is_some());
        if shows || !TEXT.starts_with(body) || headers.get("cache-control") != Some("no-store") {
            return Err(wrong("a refusal that shows something"));
        }
        Ok(match self.ask.pass {
            _ if amid_a_reload => "requests refused amid a reload",
            Pass::Link(_) | Pass::Cookie(_) => "requests refused for their keys",
            Pass::Expired(_) => "requests refused, as the link has expired",
            Pass::Forged(_) => "requests refused, as the signature is wrong",
            Pass::Elsewhere(_) => "requests refused, as the link is for another URL",
            Pass::Unsigned | Pass::Open => "requests refused without a signature",
        })
    }

    /// Checks that the response is of a generation of the edges' files that may be in force.
    pub(super) fn generation(&self, status: u16) -> Result<(), Complaint> {
        if !self.world.has_files || status >= 500 {
            return Ok(());
        }
        let answer = self.answer;
        let generations = &self.world.generations;
        let possible = generations.possible(answer.asked, answer.ended);
        let told = answer.headers.number(GENERATION);
        match told.is_some_and(|told| possible.contains(&(told as u64))) {
            true => Ok(()),
            false => Err(wrong(format!(
                "of generation {told:?}, and not of {possible:?}"
            ))),
        }
    }
}
