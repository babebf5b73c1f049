// SPDX-License-Identifier: Apache-2.0
//! Secrets: the value of a variable, or the text of a file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Environment, docs};
use crate::settings::SettingProblem;
use crate::sites::{CREDENTIALS_DIRECTORY, read_secret};

/// A secret that the user set. NB: it has no `Debug`.
pub struct Secret {
    /// The secret.
    pub text: String,
    /// Whether the secret is from a file, so that no variable of the environment has it.
    pub is_from_file: bool,
}

impl Environment<'_> {
    /// Reads a secret: from the variable `name`, from the file that `name` with `_FILE` names, or from the file `name`
    /// in systemd's folder of credentials. Refuses more than one of them. No problem shows the secret.
    pub fn secret(&mut self, name: &'static str) -> Option<Secret> {
        let value = self.find(name);
        let mut files = self.secret_files(name);
        let sources = files.iter().map(|(source, _)| source.as_str());
        let of_value = value.as_ref().map(|_| self.shown(name));
        let sources: Vec<_> = of_value.into_iter().chain(sources).collect();
        if sources.len() > 1 {
            let sources = sources.join(" and ");
            self.report(SettingProblem::Names(format!(
                "{sources}: expected only one of them"
            )));
            return None;
        }
        match (value, files.pop()) {
            (Some(value), _) => self.text_of(name, value),
            (None, Some((source, file))) => self.text_of_file(&source, &file),
            (None, None) => None,
        }
    }

    /// Whether a secret is set, by a variable or a file.
    pub fn has_secret(&mut self, name: &'static str) -> bool {
        self.find(name).is_some() || !self.secret_files(name).is_empty()
    }

    /// The files with a secret, and a text that names each one's source.
    fn secret_files(&mut self, name: &'static str) -> Vec<(String, PathBuf)> {
        let mut files: Vec<(String, PathBuf)> = Vec::new();
        let names = [Some(name), docs::short_name(name)].into_iter().flatten();
        for variable in names.map(docs::file_variable) {
            let path = self.value(&variable).map(PathBuf::from);
            let path = path.filter(|path| files.iter().all(|(_, known)| known != path));
            if let Some(path) = path {
                let long = docs::file_variable(name);
                if variable != long {
                    self.note_short(&variable, &long);
                }
                files.push((variable, path));
            }
        }
        let of_systemd = self.value(CREDENTIALS_DIRECTORY);
        let of_systemd = of_systemd.map(|folder| Path::new(&folder).join(name));
        if let Some(path) = of_systemd.filter(|path| path.exists()) {
            files.push((format!("{CREDENTIALS_DIRECTORY} with {name}"), path));
        }
        files
    }

    fn text_of(&mut self, name: &'static str, value: OsString) -> Option<Secret> {
        let Ok(text) = value.into_string() else {
            self.refuse(name, None, "must be valid UTF-8");
            return None;
        };
        Some(Secret {
            text,
            is_from_file: false,
        })
    }

    fn text_of_file(&mut self, source: &str, file: &Path) -> Option<Secret> {
        match read_secret(file) {
            Ok(text) => Some(Secret {
                text,
                is_from_file: true,
            }),
            Err(error) => {
                self.report(SettingProblem::Names(format!("{source}: {error}")));
                None
            }
        }
    }
}
