// SPDX-License-Identifier: Apache-2.0
//! The section `store.slices`: objects that are larger than the largest stored object.

use serde_json::Value;

use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Bytes, Form, Kind, MAX_BYTES, Whole};
use crate::policy::forms::glob::Glob;
use crate::policy::forms::large_url::LargeUrl;
use crate::policy::forms::section::section;
use crate::policy::sections::glob_set::GlobSet;
use crate::policy::sections::rules::CanonicalGlob;

/// Least size of a slice in bytes. Each slice is a request to the origin and a file of the store.
pub(in crate::policy) const LEAST_SLICE: u64 = 256 << 10;
/// Greatest size of a slice in bytes. Each slow client may hold some slices in memory.
pub(in crate::policy) const GREATEST_SLICE: u64 = 16 << 20;
/// Greatest number of slices that may be requested ahead of the client.
pub const MOST_AHEAD: usize = 8;
/// Greatest number of requests that Envoy accepts at one time on a client's connection (`max_concurrent_streams`).
const MOST_STREAMS: usize = 100;
/// Endings of the names of files that are large as a rule: archives, images of disks, packages, media, data. A HEAD of a
/// small one costs the first client a round trip. An unknown large one is sent twice. So an ending is here even if only
/// one file in a hundred is large, and segments of films (`m4s`, `ts`) are not, as none of them is.
const KNOWN: [&str; 34] = [
    "7z",
    "apk",
    "avi",
    "bin",
    "bz2",
    "deb",
    "dmg",
    "exe",
    "flac",
    "gguf",
    "gz",
    "img",
    "iso",
    "m4a",
    "m4v",
    "mkv",
    "mov",
    "mp3",
    "mp4",
    "msi",
    "onnx",
    "parquet",
    "pkg",
    "qcow2",
    "rar",
    "rpm",
    "safetensors",
    "tar",
    "tgz",
    "wav",
    "webm",
    "xz",
    "zip",
    "zst",
];

section! {
    /// Slices, in which objects are stored that are larger than store.max_object_bytes.
    pub(in crate::policy) struct Slices {
        /// The size of a slice in bytes. Each client that reads a large object slowly may hold two and a half of
        /// them in memory. 0: larger objects pass through and are not stored. Only the standalone edge has slices,
        /// because they need the native module; in the mesh this must stay 0.
        bytes: u64 as SliceBytes = 0,
        /// How many slices are requested from the origin ahead of the client whose request fetches them.
        ahead: usize as Whole<0, { MOST_AHEAD as u64 }> = 3,
        /// How many responses in slices one connection of a client gets at one time. Its other requests for large
        /// objects wait until one of these ends. A connection by HTTP/1.1 has one response at a time.
        streams: usize as Whole<1, { MOST_STREAMS as u64 }> = 32,
        /// Paths of objects that are large as a rule. A HEAD tells the length of such an object on its first request,
        /// so that also its first client gets slices. Patterns are as in rules.
        known: Vec<Glob> as Vec<CanonicalGlob> = KNOWN.map(|ending| Glob::new(&format!("*.{ending}"))).into(),
        /// The largest object that is stored as slices, in bytes. Larger objects pass through.
        max_object_bytes: u64 as Bytes<1, MAX_BYTES> = 64 << 30,
        /// Hashes of the URLs of objects that former processes have stored as slices. The entry point fills this in.
        stored: Vec<LargeUrl> = Vec::new(),
    }
}

/// The size of a slice: 0, or a number of bytes within bounds.
pub(in crate::policy) struct SliceBytes;

impl Form<u64> for SliceBytes {
    fn read(value: &Value, kind: Kind) -> Result<u64, PolicyError> {
        if Bytes::<0, 0>::read(value, kind).is_ok_and(|zero: u64| zero == 0) {
            return Ok(0);
        }
        Bytes::<LEAST_SLICE, GREATEST_SLICE>::read(value, kind).map_err(|_| {
            let expected = format!(
                "0, or a number of bytes from {LEAST_SLICE} to {GREATEST_SLICE}, such as 1048576 or 1Mi"
            );
            PolicyError::unexpected(value, &expected)
        })
    }
}

/// The lengths of objects that are sliced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlicedLengths {
    /// Greatest length of an object that is stored as a whole, in bytes.
    pub above: u64,
    /// Greatest length of an object that is sliced, in bytes.
    pub most: u64,
}

/// How objects are stored that are larger than the largest stored object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicesPolicy {
    /// Size of a slice in bytes; 0 if there are no slices.
    pub bytes: u64,
    /// Number of slices that are requested ahead of the client whose request fetches them.
    pub ahead: usize,
    /// Number of responses that one connection of a client gets at one time.
    pub streams: usize,
    /// The lengths of objects that are sliced.
    pub lengths: SlicedLengths,
    /// URLs of objects that former processes have stored in slices, the newest last.
    pub stored: Vec<LargeUrl>,
    known: GlobSet,
}

impl SlicesPolicy {
    /// Whether there are slices.
    pub const fn is_on(&self) -> bool {
        self.bytes > 0
    }

    /// Whether objects of that canonical path, without its query, are large as a rule.
    pub fn is_known(&self, path: &str) -> bool {
        self.is_on() && self.known.first_match(path).is_some()
    }
}

impl Slices {
    /// Compiles the policy with that size of the largest object that is stored as a whole.
    pub(in crate::policy) fn compile(
        &self,
        max_object_bytes: u64,
    ) -> Result<SlicesPolicy, PolicyError> {
        if self.bytes > max_object_bytes {
            let message = format!(
                "{}: expected at most store.max_object_bytes, {max_object_bytes}, because a slice is stored like an object",
                self.bytes
            );
            return Err(PolicyError::new("store.slices.bytes", message));
        }
        Ok(SlicesPolicy {
            bytes: self.bytes,
            ahead: self.ahead,
            streams: self.streams,
            lengths: SlicedLengths {
                above: max_object_bytes,
                most: self.max_object_bytes,
            },
            stored: self.stored.clone(),
            known: GlobSet::new(self.known.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::policy::Policy;
    use crate::policy::sections::slices::*;

    fn parse(store: Value) -> Result<SlicesPolicy, String> {
        let document = json!({ "origin": { "kind": "http" }, "store": store });
        let policy = Policy::parse(document.to_string().as_bytes());
        policy
            .map(|policy| policy.edge.slices.clone())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn there_are_slices_if_they_have_a_size() {
        let off = parse(json!({})).unwrap();
        assert!(!off.is_on() && !off.is_known("/a.iso"));
        let on = parse(json!({ "slices": { "bytes": "1Mi" } })).unwrap();
        assert!(on.is_on() && on.bytes == 1 << 20 && on.ahead == 3);
        assert_eq!(on.lengths.above, 16 << 20);
        assert_eq!(on.lengths.most, 64 << 30);
    }

    #[test]
    fn paths_of_files_that_are_large_as_a_rule_are_known() {
        let on = parse(json!({ "slices": { "bytes": "1Mi" } })).unwrap();
        for (path, known) in [
            ("/a.iso", true),
            ("/a/b.tar.gz", true),
            ("/a.iso.html", false),
            ("/iso", false),
        ] {
            assert_eq!(on.is_known(path), known, "{path}");
        }
        let some = parse(json!({ "slices": { "bytes": "1Mi", "known": ["/films/*"] } })).unwrap();
        assert!(some.is_known("/films/a") && !some.is_known("/a.iso"));
    }

    #[test]
    fn a_slice_is_as_large_as_a_stored_object_at_most() {
        for (store, error) in [
            (
                json!({ "slices": { "bytes": 1000 } }),
                "store.slices.bytes: 1000: expected 0, or a",
            ),
            (
                json!({ "slices": { "bytes": "17Mi" } }),
                "store.slices.bytes: \"17Mi\": expected 0",
            ),
            (
                json!({ "slices": { "ahead": 9 } }),
                "store.slices.ahead: 9: expected a whole number",
            ),
            (
                json!({ "slices": { "streams": 0 } }),
                "store.slices.streams: 0: expected a whole number",
            ),
            (
                json!({ "slices": { "known": ["a"] } }),
                "store.slices.known[0]: \"a\": expected a path",
            ),
            (
                json!({ "slices": { "stored": ["0123"] } }),
                "store.slices.stored[0]: \"0123\": expected 16 hexadecimal digits",
            ),
            (
                json!({ "max_object_bytes": "1Mi", "slices": { "bytes": "2Mi" } }),
                "store.slices.bytes: 2097152: expected at most store.max_object_bytes, 1048576",
            ),
        ] {
            let found = parse(store).unwrap_err();
            assert!(found.starts_with(error), "{found}");
        }
    }
}
