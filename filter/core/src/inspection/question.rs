// SPDX-License-Identifier: Apache-2.0
//! A question to all workers, and its text form: the path and query of the request to the control listener.

use std::fmt;

use super::asked_decisions::AskedDecisions;
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
    /// The heaviest URLs, which are recorded from the first question on.
    Urls {
        /// Whether to distinguish and show the queries of the URLs.
        query: bool,
    },
    /// The last requests that have ended.
    Decisions(AskedDecisions),
    /// The last error of each site's origin.
    Origins,
}

impl Question {
    /// The paths of all questions, for messages.
    pub const PATHS: &[&str] = &["/flights", "/explain", "/urls", "/decisions", "/origins"];

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
            "/urls" => Self::Urls {
                query: parameters.take_switch("query")?,
            },
            "/decisions" => Self::Decisions(AskedDecisions::take(&mut parameters)?),
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
}

impl fmt::Display for Question {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flights => out.write_str("/flights"),
            Self::Explain(request) => out.write_str(&request.text()),
            Self::Urls { query } => {
                let mut text = "/urls".to_owned();
                Parameters::append_switch(&mut text, "query", *query);
                out.write_str(&text)
            }
            Self::Decisions(asked) => out.write_str(&asked.text()),
            Self::Origins => out.write_str("/origins"),
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
        let asked = AskedDecisions {
            after: vec![Some(5), None, Some(u64::MAX)],
            all: true,
            query: true,
        };
        let others = [
            Question::Flights,
            Question::Urls { query: false },
            Question::Urls { query: true },
            Question::Decisions(AskedDecisions::default()),
            Question::Decisions(asked),
            Question::Origins,
        ];
        for question in explain.into_iter().chain(others) {
            let text = question.to_string();
            assert_eq!(Question::parse(&text), Ok(question), "{text}");
            let path = text.split('?').next().unwrap_or_default();
            assert!(Question::PATHS.contains(&path), "{text}");
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
            (
                "host=a&path=/&header=x:%0a",
                "header: \"x:\\n\": expected NAME:VALUE",
            ),
        ] {
            let text = format!("/explain?{query}");
            assert_eq!(Question::parse(&text).unwrap_err().to_string(), error);
        }
    }
}
