// SPDX-License-Identifier: Apache-2.0
//! The root credentials of the demo's MinIO, generated once.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};

use crate::system::random;

/// MinIO's root credentials.
pub struct Keys {
    /// The access key's id.
    pub id: String,
    /// The access key's secret.
    pub secret: String,
}

impl Keys {
    /// Reads the keys in `file`, or makes new ones.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn load(file: &mut File) -> io::Result<Self> {
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        if let Some((id, secret)) = text.trim_end().split_once(':') {
            return Ok(Self {
                id: id.into(),
                secret: secret.into(),
            });
        }
        let (id, secret) = (random::hex()?, random::hex()? + &random::hex()?);
        file.rewind()?;
        file.set_len(0)?;
        writeln!(file, "{id}:{secret}")?;
        Ok(Self { id, secret })
    }
}
