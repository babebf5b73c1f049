// SPDX-License-Identifier: Apache-2.0
//! A question to all workers, and its text form: the path and query of the request to the control listener.

use std::fmt;

use super::explained_request::ExplainedRequest;
use super::parameters::Parameters;
use super::question_error::QuestionError;

/// A question to all workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The flights that a worker leads or follows.
    Flights,
    /// The decision about a request, and what a worker knows of its key.
    Explain(ExplainedRequest),
}

impl Question {
    /// The paths of all questions, for messages.
    pub const PATHS: &[&str] = &["/flights", "/explain"];

    /// Reads the path and query of a request, or a text that [`fmt::Display`] has written.
    ///
    /// # Errors
    /// The path is none of [`Question::PATHS`] (404), or a parameter is wrong (400).
    pub fn parse(text: &str) -> Result<Self, QuestionError> {
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let mut parameters = Parameters::parse(query)?;
        let question = match path {
            "/flights" => Self::Flights,
            "/explain" => Self::Explain(ExplainedRequest::take(&mut parameters)?),
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
            Self::Explain(request) => out.write_str(&request.text()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_is_read_as_it_was_written() {
        let request = ExplainedRequest {
            secure: true,
            host: "a.test:8443".into(),
            path: "/a b?x=1&y=%20#é".into(),
            headers: vec![
                ("accept".into(), "text/html, */*;q=0.1".into()),
                ("x-plan".into(), "a:b&c".into()),
            ],
            online: true,
        };
        let plain = ExplainedRequest {
            secure: false,
            headers: Vec::new(),
            online: false,
            ..request.clone()
        };
        let explain = [request, plain].map(Question::Explain);
        for question in explain.into_iter().chain([Question::Flights]) {
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

    #[test]
    fn a_request_to_explain_is_refused_with_the_name_of_its_fault() {
        for (query, error) in [
            ("", "host: expected a value"),
            ("host=a", "path: expected a value"),
            (
                "host=a&path=b",
                "path: \"b\": expected a path that starts with a slash",
            ),
            (
                "host=a&path=/&scheme=ftp",
                "scheme: \"ftp\": expected http or https",
            ),
            (
                "host=a&path=/&online=yes",
                "online: \"yes\": expected 0 or 1",
            ),
            (
                "host=a&path=/&header=x",
                "header: \"x\": expected NAME:VALUE",
            ),
            (
                "host=a&path=/&header=:path:/b",
                "header: \":path:/b\": expected NAME:VALUE",
            ),
        ] {
            let text = format!("/explain?{query}");
            assert_eq!(Question::parse(&text).unwrap_err().to_string(), error);
        }
    }
}
