// SPDX-License-Identifier: Apache-2.0
//! A file with the users of a site, as `htpasswd -s` writes it.

use std::fmt;
use std::path::PathBuf;

use sluice_core::access::users::{LONGEST_USERS, PasswordUsers};

use crate::sites::read_secret;

/// The users of a site, with the hashes of their passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct UsersFile {
    file: PathBuf,
    text: String,
}

impl UsersFile {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not valid. No error shows a hash.
    pub fn read(file: PathBuf) -> Result<Self, String> {
        let text = read_secret(&file)?;
        let shown = file.display();
        if text.len() > LONGEST_USERS {
            let length = text.len();
            return Err(format!(
                "{shown}: expected at most {LONGEST_USERS} bytes: it has {length}"
            ));
        }
        PasswordUsers::parse(&text).map_err(|error| format!("{shown}: {error}"))?;
        Ok(Self { file, text })
    }

    /// The text of the file, which is a secret.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The path of the file.
    pub const fn file(&self) -> &PathBuf {
        &self.file
    }
}

impl fmt::Debug for UsersFile {
    // NB: the hashes are secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("UsersFile").field(&self.file).finish()
    }
}
