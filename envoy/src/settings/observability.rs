// SPDX-License-Identifier: Apache-2.0
//! The access log.

use serde::Serialize;

use super::environment::Environment;

/// The format of the access log, which is written to standard output. The template uses the formats by their names
/// in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessLog {
    /// A line of text for each request.
    Text,
    /// A JSON object in a line for each request.
    Json,
    /// No access log.
    Off,
}

impl AccessLog {
    /// Reads `SLUICE_ACCESS_LOG`.
    pub fn read(env: &mut Environment<'_>) -> Option<Self> {
        let choices = [
            ("text", Self::Text),
            ("json", Self::Json),
            ("off", Self::Off),
        ];
        env.choice("SLUICE_ACCESS_LOG", &choices)
    }
}
