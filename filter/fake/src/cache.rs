// SPDX-License-Identifier: Apache-2.0
//! Envoy's cache filter (v1, files): its entries, the responses that it stores, and the revalidations that it starts.

use std::collections::BTreeMap;

use sluice_core::http::syntax::date;

use crate::{HeaderMap, HeaderTexts as _};

/// Statuses that Envoy's cache stores.
const STORED_STATUSES: [u16; 13] = [
    200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 451, 501,
];

/// Response that the cache has stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Headers as ORIGIN has written them.
    pub headers: HeaderMap,
    /// Whole body.
    pub body: Vec<u8>,
}

/// State of one key in the cache.
#[derive(Debug, Default)]
struct Entry {
    stored: Option<Stored>,
    /// Whether a fill is under way. The cache accepts no second fill of the key meanwhile.
    filling: bool,
    /// Response of a fill that has ended but is not readable yet.
    committing: Option<Stored>,
}

/// Cache, by host and path.
#[derive(Debug, Default)]
pub struct FakeCache {
    entries: BTreeMap<String, Entry>,
}

impl FakeCache {
    /// Returns the stored response, fresh or stale.
    pub fn look_up(&self, key: &str) -> Option<&Stored> {
        self.entries.get(key)?.stored.as_ref()
    }

    /// Whether the cache would store a response with these headers.
    pub fn takes(headers: &HeaderMap) -> bool {
        let control = headers.get("cache-control").unwrap_or_default();
        let forbidden = ["no-store", "private"];
        let forbidden = forbidden.iter().any(|word| control.contains(word));
        STORED_STATUSES.contains(&headers.status())
            && !forbidden
            && !headers.has("vary")
            && headers.has("date")
            && (max_age(headers).is_some() || must_be_validated(headers))
    }

    /// Returns the age of `stored`: `Ok` if it is served at `now` without asking the origin, else `Err`. `now` is in
    /// seconds since 1970.
    pub fn age_if_fresh(stored: &Stored, now: i64) -> Result<i64, i64> {
        let date = stored.headers.get("date").and_then(date::parse);
        let age = now.saturating_sub(date.unwrap_or(i64::MIN)).max(0);
        match max_age(&stored.headers) {
            Some(lifetime) if age <= lifetime && !must_be_validated(&stored.headers) => Ok(age),
            _ => Err(age),
        }
    }

    /// Starts a fill. False if the cache rejects it, because another fill of the key is under way.
    pub fn begin(&mut self, key: &str) -> bool {
        let entry = self.entries.entry(key.to_owned()).or_default();
        let free = !entry.filling && entry.committing.is_none();
        entry.filling |= free;
        free
    }

    /// Ends a fill. The response is readable after a commit. The headers behind a value that is not text are lost.
    pub fn end(&mut self, key: &str, mut stored: Stored) {
        let lines = stored.headers.iter();
        let kept = lines.take_while(|(_, value)| std::str::from_utf8(value).is_ok());
        let kept = kept.map(|(name, value)| (name.to_owned(), value.to_owned()));
        stored.headers = HeaderMap::of_lines(kept.collect());
        let entry = self.entries.entry(key.to_owned()).or_default();
        entry.filling = false;
        entry.committing = Some(stored);
    }

    /// Drops a fill that was not completed.
    pub fn abandon(&mut self, key: &str) {
        self.entries.entry(key.to_owned()).or_default().filling = false;
    }

    /// Replaces the headers of the stored response, as after a 304. The headers that describe the body are kept.
    pub fn update(&mut self, key: &str, headers: &HeaderMap) {
        let entry = self.entries.get_mut(key);
        let Some(stored) = entry.and_then(|entry| entry.stored.as_mut()) else {
            return;
        };
        let mut updated = headers.clone();
        for kept in ["etag", "content-length"] {
            match stored.headers.bytes(kept) {
                Some(value) => updated.set(kept, value),
                None => updated.remove(kept),
            }
        }
        stored.headers = updated;
    }

    /// Makes the ended fills of the matching keys readable.
    pub fn commit(&mut self, fits: impl Fn(&str) -> bool) {
        for entry in self.fitting(fits) {
            if let Some(stored) = entry.committing.take() {
                entry.stored = Some(stored);
            }
        }
    }

    /// Drops the ended fills of the matching keys, like a disk that is full or broken.
    pub fn drop_commits(&mut self, fits: impl Fn(&str) -> bool) {
        self.fitting(fits).for_each(|entry| entry.committing = None);
    }

    /// Removes the stored responses of the matching keys.
    pub fn evict(&mut self, fits: impl Fn(&str) -> bool) {
        self.fitting(fits).for_each(|entry| entry.stored = None);
    }

    /// Changes the headers of the stored responses of the matching keys.
    pub fn edit(&mut self, fits: impl Fn(&str) -> bool, edit: impl Fn(&mut HeaderMap)) {
        let stored = self.fitting(fits).filter_map(|entry| entry.stored.as_mut());
        stored.for_each(|stored| edit(&mut stored.headers));
    }

    /// Hides the stored responses of the matching keys until the next commit, as while the cache rewrites them.
    pub fn begin_rewrite(&mut self, fits: impl Fn(&str) -> bool) {
        for entry in self.fitting(fits) {
            entry.committing = entry.stored.take();
        }
    }

    /// Gives each matching key the stored response of another key, as if both had one file name.
    pub fn collide(&mut self, fits: impl Fn(&str) -> bool, others: impl Fn(&str) -> bool) {
        let other = self.fitting(others).find_map(|entry| entry.stored.clone());
        let entries = self.fitting(fits).filter(|entry| entry.stored.is_some());
        entries.for_each(|entry| entry.stored.clone_from(&other));
    }

    /// Whether a matching key has a stored response, fresh or stale.
    pub fn has(&self, fits: impl Fn(&str) -> bool) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|(key, entry)| fits(key) && entry.stored.is_some())
    }

    fn fitting(&mut self, fits: impl Fn(&str) -> bool) -> impl Iterator<Item = &mut Entry> {
        let entries = self.entries.iter_mut();
        entries.filter_map(move |(key, entry)| fits(key).then_some(entry))
    }
}

/// Whether each use is validated with the origin.
fn must_be_validated(headers: &HeaderMap) -> bool {
    let control = headers.get("cache-control").unwrap_or_default();
    control.contains("no-cache")
}

/// Seconds of freshness by `Cache-Control`.
fn max_age(headers: &HeaderMap) -> Option<i64> {
    let control = headers.get("cache-control")?;
    let mut directives = control.split(',').map(str::trim);
    directives
        .find_map(|directive| directive.strip_prefix("max-age="))?
        .parse()
        .ok()
}
