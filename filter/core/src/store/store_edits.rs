// SPDX-License-Identifier: Apache-2.0
//! How ORIGIN changes the headers of a response for Envoy's cache, and how EDGE changes them back.

use std::borrow::Cow;

use crate::freshness::Storage;
use crate::http::date;
use crate::store::entry::{ENTRY_HEADER, Entry, FillId};
use crate::store::header_edit::HeaderEdit;
use crate::store::revalidation::Revalidation;
use crate::store::stored_fields::{
    STORED_CACHE_CONTROL, STORED_VARY, StoredFields, UPSTREAM_SERVICE_TIME,
};
use crate::store::validator::Validator;

/// Stands in for a status that Envoy's cache filters cannot store. It is an error itself, so that an
/// entry is never taken for content without the filter.
const DISGUISE: &str = "501";

/// An origin's response on its way to the store, as far as the edits depend on it.
#[derive(Debug)]
pub struct OriginResponse<'a> {
    /// The fill that brings it.
    pub fill: FillId,
    /// The whole cache key.
    pub key: &'a str,
    /// The origin's status.
    pub status: u16,
    /// Number of the newest purge when its request was sent; 0 is none.
    pub purge: u64,
    /// When it came, in seconds since 1970.
    pub received: i64,
    /// The stored response that it freshens, if it is a 304 (RFC 9111, 4.3.4).
    pub freshens: Option<&'a Revalidation>,
    /// `Cache-Control`, its lines joined by commas.
    pub cache_control: Option<Cow<'a, str>>,
    /// `ETag`.
    pub etag: Option<&'a str>,
    /// `Last-Modified`, whatever it consists of.
    pub last_modified: Option<&'a [u8]>,
    /// Whether there is a `Set-Cookie`.
    pub has_set_cookie: bool,
    /// Whether there is a `Vary`.
    pub has_vary: bool,
    /// What the response varies with, for clients.
    pub vary: Option<&'a str>,
}

impl<'a> OriginResponse<'a> {
    /// Makes the response one that Envoy's cache stores for as long as `storage` says.
    pub fn stored(&self, storage: &Storage) -> Vec<HeaderEdit<'_>> {
        let entry = Entry {
            stored: true,
            disguised: storage.disguise,
            ..self.storable_entry(storage)
        };
        let strict = if storage.forbids_stale {
            ", must-revalidate"
        } else {
            ""
        };
        let control = format!("max-age={}{strict}", entry.lifetime().unasked());
        let mut edits = Vec::new();
        set(&mut edits, ENTRY_HEADER, entry.encode().into());
        self.keep_cache_control(control.into(), &mut edits);
        // Envoy counts freshness from Date, so it must be of this machine's clock, and the time that the
        // response has spent in caches before this one goes into it.
        let date = date::format(self.received.saturating_sub_unsigned(entry.age));
        set(&mut edits, "date", date.into());
        remove(&mut edits, "age");
        self.strip_cookies(&mut edits);
        if entry.status == 200 {
            set(&mut edits, "accept-ranges", "bytes".into());
        }
        if storage.disguise {
            set(&mut edits, ":status", DISGUISE.into());
        }
        match self.freshens {
            Some(stored) => freshen_validator(stored, &mut edits),
            None => self.store_validator(storage, &entry, &mut edits),
        }
        self.hide_vary(&mut edits);
        edits
    }

    /// Makes the response one that Envoy's cache passes on and does not store.
    pub fn unstored(&self) -> Vec<HeaderEdit<'_>> {
        let mut edits = Vec::new();
        set(&mut edits, ENTRY_HEADER, self.entry().encode().into());
        if let Some(stored) = self.freshens {
            freshen_validator(stored, &mut edits);
        }
        self.keep_cache_control("no-store".into(), &mut edits);
        edits
    }

    /// Makes the response one that Envoy's cache passes on, or serves what it has for, and that EDGE may share.
    pub fn without_room(&self, storage: &Storage) -> Vec<HeaderEdit<'_>> {
        let entry = self.storable_entry(storage);
        let mut edits = Vec::new();
        set(&mut edits, ENTRY_HEADER, entry.encode().into());
        if let Some(stored) = self.freshens {
            // Envoy's cache writes all of what it freshens anew, and loses it where that fails.
            set(&mut edits, "etag", stored.unwritten().into());
            remove(&mut edits, "last-modified");
            set(&mut edits, "age", entry.age.to_string().into());
        }
        self.strip_cookies(&mut edits);
        self.keep_cache_control("no-store".into(), &mut edits);
        edits
    }

    /// The mark of a response that is not for storing.
    fn entry(&self) -> Entry<'_> {
        let freshened = self.freshens.is_some();
        let stored = self.freshens.and_then(Revalidation::validator);
        Entry {
            fill: self.fill,
            body: stored.map_or(self.fill.body(), |stored| stored.body),
            status: if freshened { 200 } else { self.status },
            ttl: 0,
            age: 0,
            stale_while_revalidate: 0,
            stale_if_error: 0,
            purge: 0,
            stored: false,
            revalidated: freshened,
            disguised: false,
            key: self.key,
        }
    }

    /// The mark of a response that the policy lets the store have, as `storage` says.
    fn storable_entry(&self, storage: &Storage) -> Entry<'_> {
        Entry {
            ttl: storage.ttl.as_secs(),
            age: storage.age.as_secs(),
            stale_while_revalidate: storage.stale_while_revalidate.as_secs(),
            stale_if_error: storage.stale_if_error.as_secs(),
            purge: self.purge,
            ..self.entry()
        }
    }

    /// Tells the store `control`, and keeps what the origin said for EDGE.
    fn keep_cache_control<'b>(&'b self, control: Cow<'b, str>, edits: &mut Vec<HeaderEdit<'b>>) {
        if let Some(own) = self.cache_control.as_deref() {
            set(edits, STORED_CACHE_CONTROL, own.into());
        }
        set(edits, "cache-control", control);
    }

    /// Takes away the `Set-Cookie` of a response that others get too. There is none unless the policy strips it.
    fn strip_cookies(&self, edits: &mut Vec<HeaderEdit<'_>>) {
        if self.has_set_cookie {
            remove(edits, "set-cookie");
        }
    }

    /// Writes what a later revalidation has to know. Without validators the origin must not be asked for
    /// changes: its 304 would freshen an error.
    fn store_validator(
        &self,
        storage: &Storage,
        entry: &Entry<'_>,
        edits: &mut Vec<HeaderEdit<'_>>,
    ) {
        let last_modified = self.last_modified;
        let date = last_modified.and_then(|value| std::str::from_utf8(value).ok());
        let own = |value: Option<&'a str>| value.filter(|_| !storage.neutral_validators);
        let validator = Validator {
            lifetime: entry.lifetime(),
            body: entry.fill.body(),
            last_modified: own(date).and_then(date::parse),
            etag: own(self.etag),
        };
        set(edits, "etag", validator.encode().into());
        if last_modified.is_some() {
            remove(edits, "last-modified");
        }
    }

    /// Hides `Vary` from the store, for which the key says it all.
    fn hide_vary<'b>(&'b self, edits: &mut Vec<HeaderEdit<'b>>) {
        if let Some(vary) = self.vary {
            set(edits, STORED_VARY, vary.into());
        }
        if self.has_vary {
            remove(edits, "vary");
        }
    }
}

/// The store freshens a response only by a 304 with the very `ETag` that it has stored.
fn freshen_validator<'a>(stored: &'a Revalidation, edits: &mut Vec<HeaderEdit<'a>>) {
    set(edits, "etag", stored.value().into());
    remove(edits, "last-modified");
}

/// Undoes for the client what ORIGIN did to the response for Envoy's cache, `Vary` excepted.
pub fn restored<'a>(entry: &Entry<'_>, fields: &StoredFields<'a>) -> Vec<HeaderEdit<'a>> {
    let mut edits = Vec::new();
    remove(&mut edits, ENTRY_HEADER);
    // The cache filter's own client adds it. A call of the host costs more than a look at what it gave.
    if fields.has_upstream_service_time() {
        remove(&mut edits, UPSTREAM_SERVICE_TIME);
    }
    if entry.disguised {
        set(&mut edits, ":status", entry.status.to_string().into());
    }
    if let Some(own) = fields.own_cache_control {
        let own = String::from_utf8_lossy(own);
        set(&mut edits, "cache-control", own);
        remove(&mut edits, STORED_CACHE_CONTROL);
    } else if fields.has_cache_control() {
        remove(&mut edits, "cache-control");
    }
    if let Some(validator) = fields.validator() {
        match validator.etag {
            Some(etag) => set(&mut edits, "etag", etag.into()),
            None => remove(&mut edits, "etag"),
        }
        if let Some(date) = validator.last_modified() {
            set(&mut edits, "last-modified", date.into());
        }
    }
    edits
}

// Out of line, since every worker compiles the module at its start.
#[inline(never)]
fn set<'a>(edits: &mut Vec<HeaderEdit<'a>>, name: &'a str, value: Cow<'a, str>) {
    edits.push(HeaderEdit::Set(name, value));
}

#[inline(never)]
fn remove<'a>(edits: &mut Vec<HeaderEdit<'a>>, name: &'a str) {
    edits.push(HeaderEdit::Remove(name));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const SECONDS: i64 = 784_111_777;
    const STORED: &str = "sluice 10 0 0 a - \"x\"";

    fn storage() -> Storage {
        Storage {
            ttl: Duration::from_secs(60),
            age: Duration::from_secs(7),
            stale_while_revalidate: Duration::from_secs(5),
            stale_if_error: Duration::ZERO,
            forbids_stale: false,
            disguise: false,
            neutral_validators: false,
        }
    }

    fn response() -> OriginResponse<'static> {
        OriginResponse {
            fill: FillId {
                nonce: 1,
                stream: 2,
            },
            key: "h/k",
            status: 200,
            purge: 3,
            received: SECONDS + 7,
            freshens: None,
            cache_control: Some("public".into()),
            etag: Some("\"x\""),
            last_modified: Some(DATE.as_bytes()),
            has_set_cookie: false,
            has_vary: false,
            vary: None,
        }
    }

    fn revalidation() -> Revalidation {
        Revalidation::parse(Some(STORED), Some(DATE), SECONDS).unwrap()
    }

    /// The headers that a message has after `edits`, in the order of their names.
    fn edited<'a>(
        before: &[(&'a str, &'a str)],
        edits: &'a [HeaderEdit<'a>],
    ) -> Vec<(&'a str, &'a str)> {
        let mut headers: std::collections::BTreeMap<_, _> = before.iter().copied().collect();
        for edit in edits {
            match edit {
                HeaderEdit::Set(name, value) => headers.insert(*name, value.as_ref()),
                HeaderEdit::Remove(name) => headers.remove(name),
            };
        }
        headers.into_iter().collect()
    }

    fn value<'a>(edits: &'a [HeaderEdit<'a>], wanted: &str) -> Option<&'a str> {
        let mut found = edits.iter().filter_map(|edit| match edit {
            HeaderEdit::Set(name, value) if *name == wanted => Some(value.as_ref()),
            _ => None,
        });
        found.next()
    }

    fn removes(edits: &[HeaderEdit<'_>], name: &str) -> bool {
        edits.contains(&HeaderEdit::Remove(name))
    }

    #[test]
    fn a_stored_response_tells_the_store_the_policy_and_keeps_what_the_origin_said() {
        let response = response();
        let edits = response.stored(&storage());
        assert_eq!(value(&edits, "cache-control"), Some("max-age=65"));
        assert_eq!(value(&edits, STORED_CACHE_CONTROL), Some("public"));
        assert_eq!(value(&edits, "accept-ranges"), Some("bytes"));
        assert_eq!(
            value(&edits, "etag"),
            Some("sluice 60 5 0 3 784111777 \"x\"")
        );
        assert!(removes(&edits, "last-modified"));
    }

    #[test]
    fn the_time_in_other_caches_goes_into_the_date_from_which_the_store_counts() {
        let response = response();
        let edits = response.stored(&storage());
        assert_eq!(value(&edits, "date"), Some(DATE));
        assert!(removes(&edits, "age"));
    }

    #[test]
    fn what_must_not_be_served_stale_says_so_to_the_store() {
        let strict = Storage {
            forbids_stale: true,
            ..storage()
        };
        let response = response();
        let edits = response.stored(&strict);
        let control = value(&edits, "cache-control");
        assert_eq!(control, Some("max-age=65, must-revalidate"));
    }

    #[test]
    fn a_status_that_the_store_does_not_take_is_disguised_and_comes_back() {
        let disguise = Storage {
            disguise: true,
            neutral_validators: true,
            ..storage()
        };
        let response = OriginResponse {
            status: 404,
            ..response()
        };
        let edits = response.stored(&disguise);
        assert_eq!(value(&edits, ":status"), Some("501"));
        assert_eq!(value(&edits, "etag"), Some("sluice 60 5 0 3 - -"));
        assert_eq!(value(&edits, "accept-ranges"), None);
        let entry = Entry::parse(value(&edits, ENTRY_HEADER).unwrap()).unwrap();
        let restored = restored(&entry, &StoredFields::default());
        assert_eq!(value(&restored, ":status"), Some("404"));
    }

    #[test]
    fn a_304_freshens_the_stored_response_by_its_own_tag() {
        let stored = revalidation();
        let response = OriginResponse {
            status: 304,
            freshens: Some(&stored),
            ..response()
        };
        for edits in [response.stored(&storage()), response.unstored()] {
            assert_eq!(value(&edits, "etag"), Some(STORED));
            assert!(removes(&edits, "last-modified"));
            let entry = Entry::parse(value(&edits, ENTRY_HEADER).unwrap()).unwrap();
            assert!(entry.revalidated && entry.status == 200);
        }
    }

    #[test]
    fn a_304_without_room_leaves_the_stored_response_as_it_is() {
        let stored = revalidation();
        let response = OriginResponse {
            status: 304,
            freshens: Some(&stored),
            ..response()
        };
        let edits = response.without_room(&storage());
        assert_eq!(value(&edits, "etag"), Some(stored.unwritten()).as_deref());
        assert_eq!(value(&edits, "age"), Some("7"));
        assert_eq!(value(&edits, "cache-control"), Some("no-store"));
    }

    #[test]
    fn a_response_without_room_is_marked_as_one_that_lacks_it() {
        let response = response();
        let edits = response.without_room(&storage());
        let entry = Entry::parse(value(&edits, ENTRY_HEADER).unwrap()).unwrap();
        assert!(entry.lacks_room() && entry.purge == 3);
        assert_eq!(value(&edits, "etag"), None);
    }

    #[test]
    fn an_unstored_response_is_marked_and_otherwise_left_to_its_client() {
        let response = OriginResponse {
            has_set_cookie: true,
            has_vary: true,
            vary: Some("origin"),
            ..response()
        };
        let edits = response.unstored();
        let names: Vec<_> = edited(&[], &edits).iter().map(|(name, _)| *name).collect();
        let expected = ["cache-control", STORED_CACHE_CONTROL, ENTRY_HEADER];
        assert_eq!(names, expected);
        let entry = Entry::parse(value(&edits, ENTRY_HEADER).unwrap()).unwrap();
        assert!(!entry.stored && !entry.lacks_room());
    }

    #[test]
    fn cookies_go_into_no_response_that_others_get() {
        let response = OriginResponse {
            has_set_cookie: true,
            ..response()
        };
        for edits in [
            response.stored(&storage()),
            response.without_room(&storage()),
        ] {
            assert!(removes(&edits, "set-cookie"));
        }
    }

    #[test]
    fn vary_is_hidden_from_the_store() {
        let response = OriginResponse {
            has_vary: true,
            vary: Some("origin"),
            ..response()
        };
        let edits = response.stored(&storage());
        assert_eq!(value(&edits, STORED_VARY), Some("origin"));
        assert!(removes(&edits, "vary"));
    }

    #[test]
    fn what_the_origin_said_comes_back_out_of_the_store() {
        let before = [
            (":status", "200"),
            ("cache-control", "public"),
            ("etag", "\"x\""),
            ("last-modified", DATE),
        ];
        let response = response();
        let edits = response.stored(&storage());
        let mut kept = edited(&before, &edits);
        kept.push((UPSTREAM_SERVICE_TIME, "4"));
        let fields = kept.iter();
        let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let fields = StoredFields::of(fields);
        let restored = restored(&fields.entry().unwrap(), &fields);
        let mut expected = before.to_vec();
        expected.extend([("accept-ranges", "bytes"), ("date", DATE)]);
        expected.sort_unstable();
        assert_eq!(edited(&kept, &restored), expected);
    }

    #[test]
    fn a_cache_control_that_only_the_store_was_told_is_removed() {
        let response = OriginResponse {
            cache_control: None,
            etag: None,
            last_modified: None,
            ..response()
        };
        let edits = response.stored(&storage());
        let kept = edited(&[], &edits);
        let fields = kept.iter();
        let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let fields = StoredFields::of(fields);
        let restored = restored(&fields.entry().unwrap(), &fields);
        assert!(removes(&restored, "cache-control") && removes(&restored, "etag"));
        assert_eq!(value(&restored, "last-modified"), None);
    }
}
