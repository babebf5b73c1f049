// SPDX-License-Identifier: Apache-2.0
//! The secret on which the names of the entries depend, so that no client can foresee a name. It is stored beside
//! the entries, because without it no entry of an earlier run can be found.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::geteuid;
use sluice_core::key::secret::StoreSecret;

use crate::system::{private, random};

const NAME: &str = "secret";
/// The file's name until it is whole.
const PART: &str = "secret.part";
/// Size of the file in bytes: 32 hexadecimal digits and the line end.
const BYTES: usize = 33;

/// The secret, as 32 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct EntrySecret(String);

impl EntrySecret {
    /// The digits, which only Envoy's environment may get.
    pub fn digits(&self) -> &str {
        &self.0
    }

    /// The secret for the hashes that the entry point makes itself.
    pub fn store_secret(&self) -> Option<StoreSecret> {
        StoreSecret::parse(&self.0)
    }

    /// Reads the secret of the cache at `root`. `None`: the secret cannot be trusted, because the file is missing,
    /// is damaged, is a link, belongs to another user, or is open to other users.
    pub fn read(root: &Path) -> Option<Self> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let mut options = File::options();
        let options = options.read(true).custom_flags(i32::try_from(flags).ok()?);
        let file = options.open(root.join(NAME)).ok()?;
        let about = file.metadata().ok()?;
        let own = about.uid() == geteuid().as_raw() && about.mode() & 0o077 == 0;
        if !about.is_file() || !own {
            return None;
        }
        let mut text = String::with_capacity(BYTES + 1);
        let limit = u64::try_from(BYTES + 1).ok()?;
        file.take(limit).read_to_string(&mut text).ok()?;
        let digits = text.strip_suffix('\n')?;
        StoreSecret::parse(digits).map(|_| Self(digits.to_owned()))
    }

    /// Creates a secret for the cache at `root`, in place of one that cannot be used.
    ///
    /// # Errors
    /// The file cannot be written, or the operating system has no random bits.
    pub fn create(root: &Path) -> io::Result<Self> {
        let secret = Self(random::hex()? + &random::hex()?);
        let (part, path) = (root.join(PART), root.join(NAME));
        // The file is a rest of an interrupted start.
        private::found(fs::remove_file(&part))?;
        let mut options = File::options();
        // NB: `create_new` does not follow a link.
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&part)?;
        writeln!(file, "{}", secret.0)?;
        file.sync_all()?;
        fs::rename(&part, &path)?;
        Ok(secret)
    }
}

impl fmt::Debug for EntrySecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("EntrySecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use tempfile::TempDir;

    #[test]
    fn secret_is_read_again_and_is_another_in_each_folder() {
        let [one, other] = [TempDir::new().unwrap(), TempDir::new().unwrap()];
        fs::write(one.path().join(PART), "of a start that was cut short").unwrap();
        let secret = EntrySecret::create(one.path()).unwrap();
        assert_eq!(EntrySecret::read(one.path()), Some(secret.clone()));
        assert_ne!(EntrySecret::create(other.path()).unwrap(), secret);
        let mode = fs::metadata(one.path().join(NAME)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!one.path().join(PART).exists());
        assert!(!format!("{secret:?}").contains(secret.digits()));
    }

    #[test]
    fn secret_that_is_missing_torn_open_to_others_or_a_link_is_none() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join(NAME);
        assert_eq!(EntrySecret::read(dir.path()), None, "missing");
        let digits = "0123456789abcdef0123456789abcdef";
        let wrong = [
            String::new(),
            digits.to_owned(),
            digits[1..].to_owned() + "\n",
            format!("{digits}0\n"),
            format!("{digits}\n\n"),
            format!("{}\n", digits.replace('0', "x")),
        ];
        for text in wrong {
            private::write(&path, &text).unwrap();
            assert_eq!(EntrySecret::read(dir.path()), None, "{text:?}");
        }
        private::write(&path, &format!("{digits}\n")).unwrap();
        assert!(EntrySecret::read(dir.path()).is_some());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(EntrySecret::read(dir.path()), None, "open to a group");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        assert_eq!(EntrySecret::read(dir.path()), None, "a link");
        let before = fs::read_to_string(&elsewhere).unwrap();
        let secret = EntrySecret::create(dir.path()).unwrap();
        assert_eq!(EntrySecret::read(dir.path()), Some(secret));
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), before);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(EntrySecret::read(dir.path()), None, "a folder");
    }
}
