// SPDX-License-Identifier: Apache-2.0
//! Damage to the files of a cache, as after a loss of power: some are cut short, and some have other bytes.

use crate::chance::rng::Rng;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Number of bytes that are overwritten at once.
const SCRATCH: usize = 64;

/// Truncates some of the objects below a cache's folder, overwrites bytes of others, and returns the number of
/// changed files.
///
/// # Errors
/// Those of the file system.
pub fn tear(folder: &Path, rng: &mut Rng) -> io::Result<u64> {
    let mut torn = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            torn += tear(&path, rng)?;
        } else if entry.file_name().to_string_lossy().starts_with("cache-") && rng.below(3) == 0 {
            tear_file(&path, rng)?;
            torn += 1;
        }
    }
    Ok(torn)
}

fn tear_file(path: &Path, rng: &mut Rng) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let at = rng.below(length.max(1)) as u64;
    match rng.below(3) {
        0 => file.set_len(at),
        // A hole, as after a loss of power.
        1 => file.set_len(at).and_then(|()| file.set_len(length as u64)),
        _ => file.write_all_at(&[0xA5; SCRATCH], at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_torn_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("v1");
        fs::create_dir(&below).unwrap();
        for number in 0..60 {
            fs::write(below.join(format!("cache-{number}")), [7; 1_000]).unwrap();
            fs::write(below.join(format!("other-{number}")), [7; 1_000]).unwrap();
        }
        let torn = tear(folder.path(), &mut Rng::new(1)).unwrap();
        let is_torn = |name: &str, number: u64| {
            fs::read(below.join(format!("{name}-{number}"))).unwrap() != [7; 1_000]
        };
        let changed = |name| (0..60).filter(|&number| is_torn(name, number)).count() as u64;
        assert_eq!((changed("cache"), changed("other")), (torn, 0));
        assert!(torn > 5, "{torn}");
    }
}
