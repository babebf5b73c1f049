// SPDX-License-Identifier: Apache-2.0
//! The root credentials of the demo's MinIO, generated once.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::DemoError;
use crate::system::random;

/// MinIO's root credentials.
pub struct Keys {
    /// The access key's id.
    pub id: String,
    /// The access key's secret.
    pub secret: String,
}

impl fmt::Debug for Keys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Keys")
    }
}

impl Keys {
    /// Reads the keys in `folder`, or makes new ones. Gives the keys and the file, whose lock lasts as long as it is
    /// open.
    ///
    /// # Errors
    /// Another edge holds the lock, or the file cannot be read or written.
    pub fn load(folder: &Path) -> Result<(Self, File), DemoError> {
        let path = folder.join("credentials");
        let failed = |error| DemoError::Io(path.clone(), error);
        let open = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        let mut file = open.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DemoError::InUse(folder.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let keys = match text.trim_end().split_once(':') {
            Some((id, secret)) => Self {
                id: id.into(),
                secret: secret.into(),
            },
            None => {
                let keys = Self {
                    id: random::hex::<8>().map_err(failed)?,
                    secret: random::hex::<20>().map_err(failed)?,
                };
                file.rewind().map_err(failed)?;
                file.set_len(0).map_err(failed)?;
                writeln!(file, "{}:{}", keys.id, keys.secret).map_err(failed)?;
                keys
            }
        };
        Ok((keys, file))
    }
}
