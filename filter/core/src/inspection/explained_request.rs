// SPDX-License-Identifier: Apache-2.0
//! A request to be explained: a GET that is not sent.

use super::parameters::Parameters;
use super::question_error::QuestionError;
use crate::policy::is_token;

/// The request of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedRequest {
    /// Whether the client uses HTTPS.
    pub secure: bool,
    /// `Host`.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// Further headers: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// Whether the origin is asked.
    pub online: bool,
}

impl ExplainedRequest {
    /// Takes the request from the parameters of a question.
    ///
    /// # Errors
    /// A parameter is missing or wrong.
    pub(super) fn take(parameters: &mut Parameters) -> Result<Self, QuestionError> {
        let host = parameters.need("host")?;
        let path = parameters.need("path")?;
        if !path.starts_with('/') {
            let error = format!("path: {path:?}: expected a path that starts with a slash");
            return Err(QuestionError::invalid(error));
        }
        let secure = match parameters.take("scheme").as_deref() {
            Some("https") => true,
            Some("http") | None => false,
            Some(other) => {
                let error = format!("scheme: {other:?}: expected http or https");
                return Err(QuestionError::invalid(error));
            }
        };
        let online = parameters.take_switch("online")?;
        let headers = parameters.take_all("header").into_iter().map(|text| {
            let line = text.split_once(':');
            let is_line = |(name, value): &(&str, &str)| is_token(name) && is_value(value);
            let line = line.filter(is_line);
            let line = line.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
            let error = || format!("header: {text:?}: expected NAME:VALUE");
            line.ok_or_else(|| QuestionError::invalid(error()))
        });
        Ok(Self {
            secure,
            host,
            path,
            headers: headers.collect::<Result<_, _>>()?,
            online,
        })
    }

    /// The scheme of its URL.
    pub fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }

    /// The text of the question.
    pub(super) fn text(&self) -> String {
        let mut text = "/explain".to_owned();
        let mut append = |name, value: &str| Parameters::append(&mut text, name, value);
        append("host", &self.host);
        append("path", &self.path);
        append("scheme", self.scheme());
        if self.online {
            append("online", "1");
        }
        for (name, value) in &self.headers {
            append("header", &format!("{name}:{value}"));
        }
        text
    }
}

/// Whether a text can be the value of a header.
fn is_value(text: &str) -> bool {
    !text.chars().any(char::is_control)
}
