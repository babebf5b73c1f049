// SPDX-License-Identifier: Apache-2.0
//! The commands with which an operator asks a running edge.

use super::Edge;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// The output of a command that has ended.
#[derive(Debug)]
pub struct CommandOutput {
    /// Exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub text: String,
    /// Standard error.
    pub errors: String,
}

impl CommandOutput {
    /// Standard output as JSON.
    ///
    /// # Panics
    /// When the command has failed, or the output is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Edge {
    /// Runs `sluice` with these arguments and the settings of this edge, and waits for its end.
    ///
    /// # Panics
    /// When the command cannot be run.
    pub async fn command(&self, arguments: &[&str]) -> CommandOutput {
        let mut command = self.entry_point(arguments[0]);
        command.args(&arguments[1..]);
        let output = tokio::task::spawn_blocking(move || command.output());
        let output = output.await.unwrap().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        CommandOutput {
            code: output.status.code(),
            text: text(&output.stdout),
            errors: text(&output.stderr),
        }
    }

    /// Starts `sluice` with these arguments and the settings of this edge. The caller reads its standard output, and
    /// ends the command.
    ///
    /// # Panics
    /// When the command cannot be started.
    #[must_use]
    pub fn start_command(&self, arguments: &[&str]) -> Child {
        let mut command = self.entry_point(arguments[0]);
        command.args(&arguments[1..]).stdout(Stdio::piped());
        command.spawn().unwrap()
    }

    /// The control socket.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.folder().join(format!("state/ctl-{}.sock", self.port))
    }
}
