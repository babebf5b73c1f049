// SPDX-License-Identifier: Apache-2.0
//! The list of the URLs whose objects are stored in slices. The list outlives the edge.
//!
//! The keeper sees each slice that Envoy stores, and appends the URL of its object, as a keyed hash. At the next start
//! the entry point passes the list to the filter with its policy, so that also the first client of such an object gets
//! slices. A URL that is lost only costs one response in one piece. So nothing waits for the disk, and a damaged line is
//! ignored.

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use sluice_core::key::secret::StoreSecret;
use sluice_core::policy::LargeUrl;

use crate::system::private::{self, found};

/// Name of the file in the cache's folder.
const FILE: &str = "large-urls";
/// Number of lines after which the file is rewritten without the URLs that are too old.
const MOST_LINES: usize = 2 * LargeUrl::MOST;

/// The list of one cache folder. Beyond [`LargeUrl::MOST`] URLs, the oldest go.
#[derive(Clone, Debug)]
pub struct LargeUrls {
    path: PathBuf,
    secret: StoreSecret,
    /// The newest URL is the last one.
    urls: VecDeque<LargeUrl>,
    known: HashSet<LargeUrl>,
    /// The number of lines in the file. `None`: this run has not written the file yet, or has failed to.
    lines: Option<usize>,
}

impl LargeUrls {
    /// Reads the list in `folder`, whose hashes depend on `secret`. A missing list reads as an empty one.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub fn read(folder: &Path, secret: StoreSecret) -> io::Result<Self> {
        let path = folder.join(FILE);
        let bytes = found(fs::read(&path))?.unwrap_or_default();
        let mut list = Self {
            path,
            secret,
            urls: VecDeque::new(),
            known: HashSet::new(),
            lines: None,
        };
        let text = String::from_utf8_lossy(&bytes);
        for url in text.lines().filter_map(LargeUrl::parse) {
            list.learn(url);
        }
        Ok(list)
    }

    /// Removes the list in `folder`, if there is one.
    ///
    /// # Errors
    /// The file exists and cannot be removed.
    pub fn remove(folder: &Path) -> io::Result<()> {
        found(fs::remove_file(folder.join(FILE))).map(drop)
    }

    /// The URLs, the newest last.
    pub fn urls(&self) -> impl Iterator<Item = LargeUrl> + '_ {
        self.urls.iter().copied()
    }

    /// Adds the URL of an entry with this authority and path in its key, if the entry is a slice.
    ///
    /// # Errors
    /// The file cannot be written. The next new URL rewrites it.
    pub fn add_slice(&mut self, authority: &[u8], path: &[u8]) -> io::Result<()> {
        let (authority, path) = (std::str::from_utf8(authority), std::str::from_utf8(path));
        let (Ok(authority), Ok(path)) = (authority, path) else {
            return Ok(());
        };
        match LargeUrl::of_slice(authority, path, &self.secret) {
            Some(url) if self.learn(url) => self.write(url),
            _ => Ok(()),
        }
    }

    /// Adds a URL in memory. Returns whether it was not known.
    fn learn(&mut self, url: LargeUrl) -> bool {
        let is_new = self.known.insert(url);
        if is_new {
            self.urls.push_back(url);
        }
        if self.urls.len() > LargeUrl::MOST
            && let Some(oldest) = self.urls.pop_front()
        {
            self.known.remove(&oldest);
        }
        is_new
    }

    /// Appends a URL to the file, or rewrites the file with all URLs.
    fn write(&mut self, url: LargeUrl) -> io::Result<()> {
        let lines = match self.lines.take() {
            Some(lines) if lines < MOST_LINES => {
                private::append(&self.path)?.write_all(format!("{url}\n").as_bytes())?;
                lines + 1
            }
            _ => {
                self.rewrite()?;
                self.urls.len()
            }
        };
        self.lines = Some(lines);
        Ok(())
    }

    /// Replaces the file by one with all URLs.
    fn rewrite(&self) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let text: String = self.urls().map(|url| format!("{url}\n")).collect();
        private::write(&new, &text)?;
        fs::rename(&new, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const SECRET: StoreSecret = StoreSecret::new([1, 2]);

    fn read(dir: &TempDir) -> LargeUrls {
        LargeUrls::read(dir.path(), SECRET).unwrap()
    }

    fn add(list: &mut LargeUrls, path: &str) {
        let key = format!("{path}#0123456789abcdef;g=7;s=0.1f");
        list.add_slice(b"a.example", key.as_bytes()).unwrap();
    }

    fn url(path: &str) -> LargeUrl {
        LargeUrl::of(&format!("a.example{path}"), &SECRET)
    }

    fn lines(dir: &TempDir) -> usize {
        let text = fs::read_to_string(dir.path().join(FILE)).unwrap();
        text.lines().count()
    }

    #[test]
    fn the_urls_of_slices_are_read_at_the_next_start_once_each() {
        let dir = TempDir::new().unwrap();
        for _ in 0..2 {
            let mut list = read(&dir);
            for path in ["/a", "/b", "/a", "/c"] {
                add(&mut list, path);
            }
            list.add_slice(b"a.example", b"/d#0123456789abcdef")
                .unwrap();
            list.add_slice(b"a.example", b"/\xff#0;s=0.1f").unwrap();
            let found: Vec<_> = read(&dir).urls().collect();
            assert_eq!(found, ["/a", "/b", "/c"].map(url));
            assert_eq!(lines(&dir), 3);
        }
    }

    #[test]
    fn a_damaged_line_is_ignored_and_goes_with_the_next_url() {
        let dir = TempDir::new().unwrap();
        let text = format!("{}\n\0\0\n{}\n0123", url("/a"), url("/b"));
        fs::write(dir.path().join(FILE), [text.as_bytes(), b"\xff"].concat()).unwrap();
        let mut list = read(&dir);
        let found: Vec<_> = list.urls().collect();
        assert_eq!(found, ["/a", "/b"].map(url));
        add(&mut list, "/c");
        let found: Vec<_> = read(&dir).urls().collect();
        assert_eq!(found, ["/a", "/b", "/c"].map(url));
        assert_eq!(lines(&dir), 3);
    }

    #[test]
    fn the_oldest_urls_go_and_the_file_is_bounded() {
        let dir = TempDir::new().unwrap();
        let mut list = read(&dir);
        for number in 0..=MOST_LINES {
            add(&mut list, &format!("/{number}"));
        }
        let newest: Vec<_> = list.urls().collect();
        assert_eq!(newest.len(), LargeUrl::MOST);
        assert_eq!(newest.last(), Some(&url(&format!("/{MOST_LINES}"))));
        assert_eq!(lines(&dir), LargeUrl::MOST);
        let found: Vec<_> = read(&dir).urls().collect();
        assert_eq!(found, newest);
    }

    #[test]
    fn a_list_that_could_not_be_written_is_written_with_the_next_url() {
        let dir = TempDir::new().unwrap();
        let mut list = read(&dir);
        add(&mut list, "/a");
        LargeUrls::remove(dir.path()).unwrap();
        list.add_slice(b"a.example", b"/b#0;s=0.1f").unwrap_err();
        add(&mut list, "/c");
        let found: Vec<_> = read(&dir).urls().collect();
        assert_eq!(found, ["/a", "/b", "/c"].map(url));
    }
}
