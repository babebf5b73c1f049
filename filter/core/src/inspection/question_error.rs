// SPDX-License-Identifier: Apache-2.0
//! The reason why a text is refused as a question.

use std::fmt;

/// The reason why a text is refused as a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionError {
    /// Status of the answer to the caller.
    pub status: u16,
    message: String,
}

impl QuestionError {
    /// The error for a wrong parameter.
    pub(super) fn invalid(message: String) -> Self {
        let status = 400;
        Self { status, message }
    }

    /// The error for an unknown path.
    pub(super) fn unknown(message: String) -> Self {
        let status = 404;
        Self { status, message }
    }
}

impl fmt::Display for QuestionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}
