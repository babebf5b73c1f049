// SPDX-License-Identifier: Apache-2.0
//! The questions to the filter. One worker takes a question, and asks the other workers.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::http::StatusCode;

use super::failure::ControlFailure;
use crate::net::unix_client::{self, Call, Reply};

/// Bound on the time of an answer. An answer about the origin waits for the origin, and that to a purge for the journal.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A client of the filter's listener for questions.
#[derive(Clone, Debug)]
pub struct Filter {
    socket: PathBuf,
}

/// The answers of the workers to one question. `S` is the shared part, which only the worker that took the question
/// knows.
#[derive(Clone, Debug, Deserialize)]
pub struct WorkerAnswers<T, S = NoSharedPart> {
    /// The answers.
    #[serde(default = "Vec::new")]
    pub workers: Vec<WorkerAnswer<T>>,
    /// The numbers of the workers that have not answered in time.
    #[serde(default)]
    pub silent: Vec<u32>,
    /// The shared part.
    #[serde(flatten)]
    pub shared: S,
}

/// An absent shared part.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct NoSharedPart {}

/// The answer of one worker.
#[derive(Clone, Debug, Deserialize)]
pub struct WorkerAnswer<T> {
    /// The number of the worker.
    pub worker: u32,
    /// The answer.
    #[serde(flatten)]
    pub answer: T,
}

impl Filter {
    /// A client of the listener at this socket.
    pub const fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// Asks the workers. `fields` are the fields of the request.
    ///
    /// # Errors
    /// The filter does not answer, or refuses the question.
    pub fn ask<T: DeserializeOwned, S: DeserializeOwned>(
        &self,
        target: &str,
        fields: &[(String, String)],
    ) -> Result<WorkerAnswers<T, S>, ControlFailure> {
        let call = Call {
            fields,
            ..Call::get(target)
        };
        let reply = self.call(&call)?;
        if reply.status != StatusCode::OK {
            return Err(ControlFailure::of_body(reply.status, &reply.body));
        }
        serde_json::from_str(&reply.body).map_err(|error| {
            let reason = format!("the answer of the filter to {target} is not understood: {error}");
            ControlFailure::new(StatusCode::BAD_GATEWAY, reason)
        })
    }

    /// Sends a call, and returns the answer unchanged.
    ///
    /// # Errors
    /// The filter does not answer.
    pub fn call(&self, call: &Call<'_>) -> Result<Reply, ControlFailure> {
        let call = Call {
            patience: PATIENCE,
            ..*call
        };
        unix_client::call(&self.socket, &call).map_err(|error| {
            let socket = self.socket.display();
            ControlFailure::unavailable(format!("the filter does not answer at {socket}: {error}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Count {
        waiting: u32,
    }

    #[test]
    fn the_answers_of_workers_are_read_with_silent_workers_and_without() {
        let text = r#"{"workers": [{"worker": 1, "waiting": 7}], "silent": [0]}"#;
        let answers: WorkerAnswers<Count> = serde_json::from_str(text).unwrap();
        assert_eq!(
            (answers.workers[0].worker, answers.workers[0].answer.waiting),
            (1, 7)
        );
        assert_eq!(answers.silent, [0]);
    }
}
