// SPDX-License-Identifier: Apache-2.0
//! How a peer is started from files only.

use crate::peers::packages::{missing, program, root};
use crate::peers::peer::{Peer, fill, unprivileged};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// A file's name and its template.
pub type File = (&'static str, &'static str);

/// How a peer is started.
pub struct Recipe {
    /// Debian's release of its package.
    pub release: &'static str,
    /// Its program, in the packages.
    pub program: &'static str,
    /// The option that prints its version.
    pub version: &'static str,
    /// The files of its configuration with their names.
    pub files: &'static [File],
    /// Arguments of its command line.
    pub arguments: &'static [&'static str],
}

impl Recipe {
    /// Starts the peer in front of `origin`; `None` if the packages do not have it.
    pub async fn start(&self, origin: SocketAddr) -> Option<Peer> {
        let Some(program) = program(self.program) else {
            missing(self.program);
            return None;
        };
        let command = |folder: &Path, address: SocketAddr, _: SocketAddr| {
            let values = [
                ("FOLDER", folder.display().to_string()),
                ("PACKAGES", root(self.release).display().to_string()),
                ("ADDRESS", address.to_string()),
                ("PORT", address.port().to_string()),
                ("ORIGIN", origin.to_string()),
                ("ORIGIN_HOST", origin.ip().to_string()),
                ("ORIGIN_PORT", origin.port().to_string()),
            ];
            for name in ["cache", "run", "log"] {
                std::fs::create_dir(folder.join(name)).unwrap();
            }
            for (name, template) in self.files {
                std::fs::write(folder.join(name), fill(template, &values)).unwrap();
            }
            let mut command = Command::new(&program);
            let arguments = self.arguments.iter();
            command.args(arguments.map(|argument| fill(argument, &values)));
            unprivileged(&mut command, folder);
            command
        };
        Some(Peer::start(self.program, command).await)
    }

    /// The command that prints its version.
    pub fn version(&self) -> Command {
        let mut command = Command::new(program(self.program).unwrap_or_default());
        command.arg(self.version);
        command
    }
}
