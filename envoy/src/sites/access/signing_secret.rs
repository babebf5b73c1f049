// SPDX-License-Identifier: Apache-2.0
//! The text of a key of signed URLs, and its source.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use sluice_core::access::sealed_key::LONGEST_KEY;
use sluice_core::access::signing_key::{SHORTEST_KEY, SigningKey};

use crate::sites::{find_secret, read_secret};

/// A key of signed URLs.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret {
    /// The name of the key.
    pub name: String,
    text: String,
    source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Variable(String),
    File(PathBuf),
}

impl SigningSecret {
    /// Reads a key from a variable, or from the place that [`find_secret`] finds for it.
    ///
    /// # Errors
    /// The variable is not set, or its value cannot be a key.
    pub fn of_variable(
        name: &str,
        variable: &str,
        lookup: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, String> {
        let missing =
            || format!("{variable:?}: expected the name of an environment variable that is set");
        let text = find_secret(lookup, variable)?.ok_or_else(missing)?;
        let text = text
            .into_string()
            .map_err(|_| format!("{variable}: must be valid UTF-8"))?;
        Self::checked(name, text, Source::Variable(variable.to_owned()))
    }

    /// Reads a key from a file.
    ///
    /// # Errors
    /// The file cannot be read, or its text cannot be a key.
    pub fn of_file(name: &str, file: PathBuf) -> Result<Self, String> {
        let text = read_secret(&file)?;
        Self::checked(name, text, Source::File(file))
    }

    /// NB: the text is a secret, so no error shows it.
    fn checked(name: &str, text: String, source: Source) -> Result<Self, String> {
        if !(SHORTEST_KEY..=LONGEST_KEY).contains(&text.len()) {
            let length = text.len();
            return Err(format!(
                "expected a key of {SHORTEST_KEY} to {LONGEST_KEY} bytes: it has {length} \
                 (`openssl rand -hex 32` makes one)"
            ));
        }
        let name = name.to_owned();
        Ok(Self { name, text, source })
    }

    /// The bytes of the key.
    pub fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// The key, for signatures. `None` for no key, because the length has been checked.
    pub fn key(&self) -> Option<SigningKey> {
        SigningKey::new(self.bytes())
    }

    /// The variable that names or contains the key.
    pub fn variable(&self) -> Option<&str> {
        match &self.source {
            Source::Variable(name) => Some(name),
            Source::File(_) => None,
        }
    }

    /// The file with the key.
    pub const fn file(&self) -> Option<&PathBuf> {
        match &self.source {
            Source::File(file) => Some(file),
            Source::Variable(_) => None,
        }
    }
}

impl fmt::Debug for SigningSecret {
    // NB: the text is a secret.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("SigningSecret").field(&self.name).finish()
    }
}
