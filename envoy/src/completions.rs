// SPDX-License-Identifier: Apache-2.0
//! The scripts that complete the arguments of `sluice` in a shell.

use clap::{Command, ValueEnum};
use clap_complete::{Shell, generate};

/// A shell with completions.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum CompletedShell {
    /// Bash
    Bash,
    /// Zsh
    Zsh,
    /// Fish
    Fish,
}

impl CompletedShell {
    /// The script that completes the arguments of `command` in this shell.
    pub fn script(self, mut command: Command) -> String {
        let shell = match self {
            Self::Bash => Shell::Bash,
            Self::Zsh => Shell::Zsh,
            Self::Fish => Shell::Fish,
        };
        let mut script = Vec::new();
        generate(shell, &mut command, "sluice", &mut script);
        String::from_utf8_lossy(&script).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;
    use std::io::Write as _;
    use std::process::{self, Stdio};

    #[test]
    fn each_script_completes_every_command_and_option() {
        for shell in CompletedShell::value_variants() {
            let script = shell.script(arguments::command());
            for command in arguments::command().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell:?} {command}");
                let options = command
                    .get_arguments()
                    .filter_map(|option| option.get_long());
                for option in options {
                    assert!(script.contains(option), "{shell:?} {command} --{option}");
                }
            }
        }
    }

    #[test]
    fn bash_accepts_its_script() {
        let mut bash = process::Command::new("bash");
        let mut bash = bash.arg("-n").stdin(Stdio::piped()).spawn().unwrap();
        let mut input = bash.stdin.take().unwrap();
        let script = CompletedShell::Bash.script(arguments::command());
        input.write_all(script.as_bytes()).unwrap();
        drop(input);
        assert!(bash.wait().unwrap().success());
    }
}
