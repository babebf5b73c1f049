// SPDX-License-Identifier: Apache-2.0
//! Files and folders that only this user can read.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

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
/// The file cannot be created.
pub fn create(path: &Path) -> io::Result<File> {
    File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
}

/// Writes a file with `text` as its content.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    create(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use tempfile::TempDir;

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
