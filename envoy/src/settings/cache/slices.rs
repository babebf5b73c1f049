// SPDX-License-Identifier: Apache-2.0
//! Slices, in which objects are stored that are larger than the largest stored object.

use serde_json::{Map, Value};
use sluice_core::policy::MOST_AHEAD;
use sluice_core::size::{self, Size};

use super::Cache;
use crate::settings::environment::Environment;

/// The sizes of slices.
const LEAST: u64 = 256 << 10;
const GREATEST: u64 = 16 << 20;
/// Default size of a slice. A slow client holds some slices in memory, and a client waits for a whole slice.
const DEFAULT: u64 = 1 << 20;
/// Number of slices that a cache has room for at least, unless the size of slices is set.
const DEFAULT_ROOM: u64 = 64;
/// Number of slices for each worker for which a cache should have room. The slices that clients are reading would be
/// evicted from a smaller cache.
const ROOM_OF_A_WORKER: u64 = 4;

/// Slices of large objects. An unset value is the policy's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slices {
    /// The size of a slice in bytes; 0: there are none.
    pub bytes: u64,
    /// The number of slices that are requested ahead of a client.
    pub ahead: Option<usize>,
    /// Patterns of the paths of objects that are large as a rule.
    pub known: Option<Vec<String>>,
    /// Bound on the bytes of an object that is stored in slices.
    pub max_object_bytes: Option<u64>,
}

impl Slices {
    /// Reads `SLUICE_SLICE_…`. A slice must fit into the cache like an object.
    pub fn read(env: &mut Environment<'_>, cache: Option<&Cache>) -> Option<Self> {
        let accepted = "0, or a number of bytes from 256KiB to 16MiB, plain or with KiB or MiB";
        let is_set = env.set("SLUICE_SLICE_BYTES").is_some();
        let bytes = env.parse("SLUICE_SLICE_BYTES", accepted, |text| match text {
            "0" => Some(0),
            _ => size::parse(text).filter(|bytes| (LEAST..=GREATEST).contains(bytes)),
        });
        let ahead = env.number("SLUICE_SLICE_AHEAD", 0..=MOST_AHEAD, "a number of slices");
        let accepted = "paths that begin with / or *, separated by commas";
        let known = env.parse("SLUICE_SLICE_KNOWN", accepted, patterns);
        let name = "SLUICE_SLICE_MAX_OBJECT_BYTES";
        let sliced_bytes = env.parse(name, size::ACCEPTED, size::parse);
        let cache = cache?;
        let bytes = match is_set {
            true => bytes?,
            false => default_bytes(cache),
        };
        if bytes > cache.max_object_bytes {
            let most = Size(cache.max_object_bytes);
            let accepted = format!("at most SLUICE_CACHE_MAX_OBJECT_BYTES, {most}");
            env.refuse(
                "SLUICE_SLICE_BYTES",
                Some(Size(bytes).to_string()),
                accepted,
            );
        }
        Some(Self {
            bytes,
            ahead,
            known,
            max_object_bytes: sliced_bytes,
        })
    }

    /// Notices that the cache is too small for slices, or for so few entries that slices cannot fill it.
    pub fn check_room(&self, env: &mut Environment<'_>, cache: &Cache, workers: u32) {
        let Some(slices) = cache.max_bytes.checked_div(self.bytes) else {
            return;
        };
        let entries = cache.max_entries;
        if slices > entries {
            env.notice(format!(
                "the cache has room for {slices} slices, and SLUICE_CACHE_MAX_ENTRIES={entries}: large objects cannot fill it; raise SLUICE_CACHE_MAX_ENTRIES or SLUICE_SLICE_BYTES"
            ));
        }
        let least = ROOM_OF_A_WORKER * u64::from(workers);
        if slices.min(entries) < least {
            let room = slices.min(entries);
            env.notice(format!(
                "the cache has room for {room} slices, and {workers} workers should have {least}: slices are evicted while clients read them; raise SLUICE_CACHE_MAX_BYTES and SLUICE_CACHE_MAX_ENTRIES, or lower SLUICE_SLICE_BYTES"
            ));
        }
    }

    /// The fields of the policy's section `store.slices` that the settings decide.
    pub fn policy_section(&self) -> Value {
        let fields = [
            ("bytes", Some(self.bytes.into())),
            ("ahead", self.ahead.map(Value::from)),
            ("known", self.known.clone().map(Value::from)),
            ("max_object_bytes", self.max_object_bytes.map(Value::from)),
        ];
        let set = fields.into_iter();
        let set = set.filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(set.collect::<Map<_, _>>())
    }
}

/// The size of slices for a cache, unless a setting gives one. 0 if the cache is too small for slices.
fn default_bytes(cache: &Cache) -> u64 {
    let most = cache.max_object_bytes.min(cache.max_bytes / DEFAULT_ROOM);
    match DEFAULT.min(most) {
        ..LEAST => 0,
        bytes => bytes,
    }
}

/// Reads patterns of paths, separated by commas.
fn patterns(text: &str) -> Option<Vec<String>> {
    let patterns = text.split(',').map(str::trim);
    let is_pattern = |text: &str| {
        let has_odd = text.contains(|it: char| it.is_control() || matches!(it, ' ' | '?' | '#'));
        text.starts_with(['/', '*']) && !has_odd
    };
    let pattern = |text: &str| is_pattern(text).then(|| text.to_owned());
    patterns.map(pattern).collect()
}
