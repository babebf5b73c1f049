// SPDX-License-Identifier: Apache-2.0
//! Files and folders that only this user can read.
//!
//! Another user who may write to the folder could have put a link in a file's place. So no file is created or
//! written behind a link.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::anyhow;
use rustix::fs::OFlags;

/// The error of an operation on the file or folder `path`.
pub fn at(path: &Path) -> impl FnOnce(io::Error) -> anyhow::Error {
    move |error| anyhow!("{}: {error}", path.display())
}

/// Makes a folder and its parents, unless they exist.
///
/// # Errors
/// The folder cannot be made.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a file, or empties it, for writing.
///
/// # Errors
/// The file cannot be created, or is a link.
pub fn create(path: &Path) -> io::Result<File> {
    let mut options = no_link();
    options.write(true).create(true).truncate(true).open(path)
}

/// Opens a file for appending.
///
/// # Errors
/// The file cannot be opened, or is a link.
pub fn append(path: &Path) -> io::Result<File> {
    no_link().append(true).open(path)
}

/// The options to open a file that is not a link, or to create one.
fn no_link() -> OpenOptions {
    let mut options = File::options();
    // NB: the flag's bits are the same in both types.
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options.mode(0o600);
    options
}

/// Writes a file with `text` as its content.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    create(path)?.write_all(text.as_bytes())
}

/// Opens a file, or creates it, for reading and writing, and locks it for as long as it is open. `None`: another
/// process has the lock.
///
/// # Errors
/// The file cannot be opened or locked, or is a link.
pub fn lock(path: &Path) -> io::Result<Option<File>> {
    let mut options = no_link();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The result of an operation on a file that may be missing; `None`: the file is missing.
///
/// # Errors
/// Any other error of the operation.
pub fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use tempfile::TempDir;

    #[test]
    fn nothing_is_written_behind_a_link() {
        let dir = TempDir::new().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("link"));
        fs::write(&victim, "kept").unwrap();
        symlink(&victim, &link).unwrap();
        let refused = [
            write(&link, "x").err(),
            append(&link).err(),
            lock(&link).err(),
        ];
        for error in refused {
            let error = error.and_then(|error| error.raw_os_error());
            assert_eq!(error, Some(Errno::LOOP.raw_os_error()));
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        // No file is created at the target of a link either.
        fs::remove_file(&victim).unwrap();
        assert!(write(&link, "x").is_err() && lock(&link).is_err());
        assert!(!victim.exists());
    }

    #[test]
    fn nobody_else_reads_what_is_made() {
        let dir = TempDir::new().unwrap();
        let folder = dir.path().join("a/b");
        make_folder(&folder).unwrap();
        make_folder(&folder).unwrap();
        let file = folder.join("c");
        write(&file, "longer").unwrap();
        write(&file, "text").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "text");
        for path in [dir.path().join("a"), folder, file] {
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", path.display());
        }
    }
}
