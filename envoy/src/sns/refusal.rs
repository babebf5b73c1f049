// SPDX-License-Identifier: Apache-2.0
//! The refusal of a message.

use ureq::http::StatusCode;

/// The reason for which a message is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// 400: the body is not a message of SNS. 403: the message is not accepted. 503: a retry may succeed.
    pub status: StatusCode,
    /// The problem of the message, without secrets.
    pub reason: String,
}

impl Refusal {
    /// The body is not a message of SNS.
    pub fn malformed(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }

    /// The message is not accepted.
    pub fn forbidden(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, reason)
    }

    /// The message cannot be verified now.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, reason)
    }

    /// SNS has refused a request that the message needs, with this `status`.
    pub fn of_answer(status: StatusCode) -> Self {
        let reason = format!("status {}", status.as_u16());
        let is_busy =
            [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status);
        if status.is_client_error() && !is_busy {
            Self::forbidden(reason)
        } else {
            Self::unavailable(reason)
        }
    }

    /// Whether a retry may succeed.
    pub fn may_pass(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE
    }

    /// Puts the action that failed in front of the reason.
    #[must_use]
    pub fn within(self, what: &str) -> Self {
        Self::new(self.status, format!("{what}: {}", self.reason))
    }

    fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { status, reason }
    }
}
