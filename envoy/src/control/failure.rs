// SPDX-License-Identifier: Apache-2.0
//! The questions that cannot be answered.

use serde::{Deserialize, Serialize};
use ureq::http::StatusCode;

use crate::net::local_socket::Answer;

/// The reason for which a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlFailure {
    /// The status code of the answer.
    pub status: StatusCode,
    /// The reason, for the operator.
    pub reason: String,
}

/// The body of an answer with a failure, as the filter's listeners write it.
#[derive(Debug, Deserialize, Serialize)]
pub struct FailureBody {
    /// The reason.
    pub error: String,
}

impl ControlFailure {
    /// A failure with this status and reason.
    pub fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
        }
    }

    /// The failure of a part of the edge that does not answer.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, reason)
    }

    /// The failure that a body with another status than 200 describes.
    pub fn of_body(status: StatusCode, body: &str) -> Self {
        let parsed = serde_json::from_str::<FailureBody>(body);
        let reason = parsed.map_or_else(|_| body.trim().to_owned(), |body| body.error);
        Self::new(status, reason)
    }

    /// The answer to a call.
    pub fn answer(self) -> Answer {
        let body = serde_json::json!(FailureBody { error: self.reason });
        (self.status, body.to_string())
    }
}
