// SPDX-License-Identifier: Apache-2.0
//! A question to all workers, and its text form: the path and query of the request to the control listener.

use std::fmt;

use super::parameters::Parameters;
use super::question_error::QuestionError;
use super::recordings::recorder::DecisionStart;
use crate::workers::WorkerId;

/// A question to all workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The flights that a worker leads or follows.
    Flights,
    /// The heaviest URLs, which are recorded from the first question on.
    Urls {
        /// Whether to distinguish and show the queries of the URLs.
        query: bool,
    },
    /// The last requests that have ended.
    Decisions {
        /// The number of the first decision from each worker, by the numbers of the workers.
        after: Vec<Option<u64>>,
        /// Whether to begin with the oldest decision of a worker that has no number in `after`, or else with the next
        /// one.
        all: bool,
        /// Whether to show the queries of the URLs.
        query: bool,
    },
    /// The last error of each site's origin.
    Origins,
}

impl Question {
    /// The paths of all questions, for messages.
    pub const PATHS: &[&str] = &["/flights", "/urls", "/decisions", "/origins"];

    /// Reads the path and query of a request, or a text that [`fmt::Display`] has written.
    ///
    /// # Errors
    /// The path is none of [`Question::PATHS`] (404), or a parameter is wrong (400).
    pub fn parse(text: &str) -> Result<Self, QuestionError> {
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let mut parameters = Parameters::parse(query)?;
        let question = match path {
            "/flights" => Self::Flights,
            "/urls" => Self::Urls {
                query: parameters.take_switch("query")?,
            },
            "/decisions" => Self::Decisions {
                after: read_after(parameters.take("after").as_deref())?,
                all: parameters.take_switch("all")?,
                query: parameters.take_switch("query")?,
            },
            "/origins" => Self::Origins,
            _ => {
                let paths = Self::PATHS.join(", GET ");
                let message = format!("{path}: expected GET {paths}, or POST /purge");
                return Err(QuestionError::unknown(message));
            }
        };
        parameters.finish()?;
        Ok(question)
    }

    /// The start of the decisions that a question asks of a worker.
    pub fn decision_start(after: &[Option<u64>], all: bool, worker: WorkerId) -> DecisionStart {
        match after.get(usize::from(worker.0)).copied().flatten() {
            Some(number) => DecisionStart::At(number),
            None if all => DecisionStart::Oldest,
            None => DecisionStart::Now,
        }
    }
}

/// Reads numbers with commas between them, in which a worker without a number has an empty place.
fn read_after(list: Option<&str>) -> Result<Vec<Option<u64>>, QuestionError> {
    let places = list.into_iter().flat_map(|list| list.split(','));
    let numbers = places.map(|place| match place {
        "" => Ok(None),
        number => number.parse().map(Some).map_err(|_| {
            let expected = "expected a number for each worker, with commas between them";
            QuestionError::invalid(format!("after: {number:?}: {expected}"))
        }),
    });
    numbers.collect()
}

/// Writes a list for [`read_after`].
fn write_after(after: &[Option<u64>]) -> String {
    let places = after.iter();
    let places = places.map(|number| number.map_or(String::new(), |number| number.to_string()));
    places.collect::<Vec<_>>().join(",")
}

impl fmt::Display for Question {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let add_switch = |text: &mut String, name, is_on: bool| {
            if is_on {
                Parameters::append(text, name, "1");
            }
        };
        match self {
            Self::Flights => text.push_str("/flights"),
            Self::Urls { query } => {
                text.push_str("/urls");
                add_switch(&mut text, "query", *query);
            }
            Self::Decisions { after, all, query } => {
                text.push_str("/decisions");
                if !after.is_empty() {
                    Parameters::append(&mut text, "after", &write_after(after));
                }
                add_switch(&mut text, "all", *all);
                add_switch(&mut text, "query", *query);
            }
            Self::Origins => text.push_str("/origins"),
        }
        out.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_is_read_as_it_was_written() {
        let decisions = |after: &[Option<u64>], all, query| Question::Decisions {
            after: after.to_vec(),
            all,
            query,
        };
        for question in [
            Question::Flights,
            Question::Urls { query: false },
            Question::Urls { query: true },
            decisions(&[], false, false),
            decisions(&[], true, true),
            decisions(&[Some(5), None, Some(u64::MAX)], false, true),
            Question::Origins,
        ] {
            let text = question.to_string();
            assert_eq!(Question::parse(&text), Ok(question), "{text}");
            let path = text.split('?').next().unwrap_or_default();
            assert!(Question::PATHS.contains(&path), "{text}");
        }
    }

    #[test]
    fn each_worker_begins_with_its_own_number() {
        let after = [None, Some(4), Some(6)];
        for (worker, all, start) in [
            (0, false, DecisionStart::Now),
            (0, true, DecisionStart::Oldest),
            (1, true, DecisionStart::At(4)),
            (2, false, DecisionStart::At(6)),
            (3, false, DecisionStart::Now),
        ] {
            let found = Question::decision_start(&after, all, WorkerId(worker));
            assert_eq!(found, start, "{worker}");
        }
    }

    #[test]
    fn a_wrong_parameter_is_refused_with_what_is_accepted() {
        for (question, message) in [
            ("/urls?query=2", "query: \"2\": expected 0 or 1"),
            (
                "/urls?all=1",
                "all: expected no such parameter, or only one",
            ),
            (
                "/decisions?after=1,x",
                "after: \"x\": expected a number for each worker, with commas between them",
            ),
            (
                "/origins?query=1",
                "query: expected no such parameter, or only one",
            ),
        ] {
            let error = Question::parse(question).unwrap_err();
            assert_eq!((error.status, error.to_string()), (400, message.to_owned()));
        }
    }

    #[test]
    fn another_path_is_refused_with_the_list_of_questions() {
        let error = Question::parse("/x?y=1").unwrap_err();
        assert_eq!(error.status, 404);
        assert!(error.to_string().starts_with("/x: expected GET /flights"));
        let error = Question::parse("/flights?query=1").unwrap_err();
        assert_eq!(error.status, 400);
        let expected = "query: expected no such parameter, or only one";
        assert_eq!(error.to_string(), expected);
    }
}
