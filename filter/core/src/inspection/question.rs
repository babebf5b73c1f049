// SPDX-License-Identifier: Apache-2.0
//! A question to all workers, and its text form: the path and query of the request to the control listener.

use std::fmt;

use super::parameters::Parameters;
use super::question_error::QuestionError;

/// A question to all workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The flights that a worker leads or follows.
    Flights,
}

impl Question {
    /// The paths of all questions, for messages.
    pub const PATHS: &[&str] = &["/flights"];

    /// Reads the path and query of a request, or a text that [`fmt::Display`] has written.
    ///
    /// # Errors
    /// The path is none of [`Question::PATHS`] (404), or a parameter is wrong (400).
    pub fn parse(text: &str) -> Result<Self, QuestionError> {
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let parameters = Parameters::parse(query)?;
        let question = match path {
            "/flights" => Self::Flights,
            _ => {
                let paths = Self::PATHS.join(", GET ");
                let message = format!("{path}: expected GET {paths}, or POST /purge");
                return Err(QuestionError::unknown(message));
            }
        };
        parameters.finish()?;
        Ok(question)
    }
}

impl fmt::Display for Question {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flights => out.write_str("/flights"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_is_read_as_it_was_written() {
        for question in [Question::Flights] {
            let text = question.to_string();
            assert_eq!(Question::parse(&text), Ok(question), "{text}");
            let path = text.split('?').next().unwrap_or_default();
            assert!(Question::PATHS.contains(&path), "{text}");
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
