// SPDX-License-Identifier: Apache-2.0
//! The decisions that a question asks for, as the parameters of its text form.

use super::parameters::Parameters;
use super::question_error::QuestionError;
use super::recordings::recorder::DecisionStart;
use crate::workers::WorkerId;

/// The decisions that a question asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskedDecisions {
    /// The number of the first decision from each worker, by the numbers of the workers.
    pub after: Vec<Option<u64>>,
    /// Whether to begin with the oldest decision of a worker that has no number in `after`. Otherwise its next decision
    /// is the first.
    pub all: bool,
    /// Whether to show the queries of the URLs.
    pub query: bool,
}

impl AskedDecisions {
    /// Takes the parameters.
    ///
    /// # Errors
    /// A parameter is wrong.
    pub fn take(parameters: &mut Parameters) -> Result<Self, QuestionError> {
        let after = parameters.take("after");
        let places = after.iter().flat_map(|list| list.split(','));
        Ok(Self {
            after: places.map(read_place).collect::<Result<_, _>>()?,
            all: parameters.take_switch("all")?,
            query: parameters.take_switch("query")?,
        })
    }

    /// The text of the question.
    pub fn text(&self) -> String {
        let mut text = "/decisions".to_owned();
        if !self.after.is_empty() {
            let places = self.after.iter();
            let places: Vec<_> = places
                .map(|number| number.map_or(String::new(), |number| number.to_string()))
                .collect();
            Parameters::append(&mut text, "after", &places.join(","));
        }
        Parameters::append_switch(&mut text, "all", self.all);
        Parameters::append_switch(&mut text, "query", self.query);
        text
    }

    /// The first decision that a worker shows.
    pub fn start(&self, worker: WorkerId) -> DecisionStart {
        let place = self.after.get(usize::from(worker.0));
        match place.copied().flatten() {
            Some(number) => DecisionStart::At(number),
            None if self.all => DecisionStart::Oldest,
            None => DecisionStart::Now,
        }
    }
}

/// Reads a worker's place in a list of numbers. It is empty for a worker without a number.
fn read_place(place: &str) -> Result<Option<u64>, QuestionError> {
    if place.is_empty() {
        return Ok(None);
    }
    place.parse().map(Some).map_err(|_| {
        let expected = "expected a number for each worker, with commas between them";
        QuestionError::invalid(format!("after: {place:?}: {expected}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_begins_with_its_own_number() {
        for (worker, all, start) in [
            (0, false, DecisionStart::Now),
            (0, true, DecisionStart::Oldest),
            (1, true, DecisionStart::At(4)),
            (2, false, DecisionStart::At(6)),
            (3, false, DecisionStart::Now),
        ] {
            let asked = AskedDecisions {
                after: vec![None, Some(4), Some(6)],
                all,
                query: false,
            };
            assert_eq!(asked.start(WorkerId(worker)), start, "{worker}");
        }
    }
}
