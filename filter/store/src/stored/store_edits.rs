// SPDX-License-Identifier: Apache-2.0
//! The edits that ORIGIN makes to the headers of a response for Envoy's cache, and the edits with which EDGE undoes
//! them.

use std::borrow::Cow;

use crate::stored::entry::{ENTRY_HEADER, Entry, FillId};
use crate::stored::hidden_fields::HIDDEN_FIELDS;
use crate::stored::revalidation::Revalidation;
use crate::stored::stored_fields::{
    STORED_CACHE_CONTROL, STORED_DATE, STORED_VARY, StoredFields, UPSTREAM_SERVICE_TIME,
};
use crate::stored::validator::Validator;
use sluice_core::freshness::{Lifetime, Storage};
use sluice_core::http::syntax::date;
use sluice_core::http::syntax::field_value::{FieldValue, JoinedValue};
use sluice_host::header_edit::HeaderEdit;

/// Status that replaces one that Envoy's cache filters cannot store. It is an error status, so that a client without
/// the filter does not take an entry for content.
const DISGUISE: &str = "501";

/// Fields of a response that are written for the store, unless they have the right value already.
pub const WRITTEN_FIELDS: [&str; 3] = ["accept-ranges", "cache-control", "date"];

/// Response of an origin on its way to the store, with the data that the edits need.
#[derive(Debug)]
pub struct OriginResponse<'a> {
    /// Fill that brings the response.
    pub fill: FillId,
    /// Whole cache key of the response. It may be that of a variant, although the key of the request is not.
    pub key: &'a str,
    /// Qualifiers that this key has, but not the key under which the response is stored.
    pub variant: Option<&'a str>,
    /// Status of the origin.
    pub status: u16,
    /// Number of the newest purge when the request was sent; 0 if there was none.
    pub purge: u64,
    /// Soft number that the policy of the request declares for the URL; 0 if there is none.
    pub declared: u64,
    /// Time of arrival, in seconds since 1970.
    pub received: i64,
    /// Stored response that the response freshens, if it is a 304 (RFC 9111, 4.3.4).
    pub freshens: Option<&'a Revalidation>,
    /// `Cache-Control`, with its lines joined by commas.
    pub cache_control: Option<JoinedValue<'a>>,
    /// `Date`.
    pub date: Option<FieldValue<'a>>,
    /// `Accept-Ranges`.
    pub accept_ranges: Option<FieldValue<'a>>,
    /// Whether the response still has the [`WRITTEN_FIELDS`] that it arrived with.
    pub is_intact: bool,
    /// `ETag`.
    pub etag: Option<FieldValue<'a>>,
    /// `Last-Modified`, with any bytes.
    pub last_modified: Option<FieldValue<'a>>,
    /// Whether the response has a `Set-Cookie` that other clients must not get.
    pub strips_set_cookie: bool,
    /// Whether the response has a `Vary`.
    pub has_vary: bool,
    /// Value of `Vary` for clients.
    pub vary: Option<FieldValue<'a>>,
}

impl<'a> OriginResponse<'a> {
    /// Returns edits with which Envoy's cache stores the response for the lifetime of `storage`.
    pub fn stored(&self, storage: &Storage) -> Vec<HeaderEdit<'_>> {
        let entry = Entry {
            stored: true,
            disguised: storage.disguise,
            is_of_index: storage.is_index,
            ..self.storable_entry(storage)
        };
        let strict = if storage.forbids_stale {
            ", must-revalidate"
        } else {
            ""
        };
        let control = if entry.lifetime.must_be_validated() {
            "no-cache".to_owned()
        } else {
            format!("max-age={}{strict}", storage.unasked())
        };
        let mut edits = Vec::new();
        set(&mut edits, ENTRY_HEADER, entry.encode().into());
        self.keep_cache_control(control.into(), &mut edits);
        // Envoy counts freshness from Date, so Date must be of this machine's clock. The time that the response has
        // spent in earlier caches is subtracted.
        let date = date::format(self.received.saturating_sub_unsigned(entry.age));
        self.keep_date(Some(&date), &mut edits);
        if !self.says(self.date, &date) {
            set(&mut edits, "date", date.into());
        }
        remove(&mut edits, "age");
        self.strip_cookies(&mut edits);
        if entry.status == 200 && !self.says(self.accept_ranges, "bytes") {
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

    /// Returns edits with which Envoy's cache passes the response on without storing it.
    pub fn unstored(&self) -> Vec<HeaderEdit<'_>> {
        self.passed_by(&self.entry())
    }

    fn passed_by(&self, entry: &Entry<'_>) -> Vec<HeaderEdit<'_>> {
        let mut edits = Vec::new();
        set(&mut edits, ENTRY_HEADER, entry.encode().into());
        if let Some(stored) = self.freshens {
            freshen_validator(stored, &mut edits);
            self.keep_date(None, &mut edits);
        }
        self.keep_cache_control("no-store".into(), &mut edits);
        edits
    }

    /// Returns edits that keep the response out of Envoy's cache. EDGE gives the followers a copy.
    pub fn shared_once(&self) -> Vec<HeaderEdit<'_>> {
        let entry = Entry {
            shared_once: true,
            ..self.entry()
        };
        self.passed_by(&entry)
    }

    /// Returns edits that keep the response out of the store: Envoy's cache only passes it on. After a 304, the store
    /// serves its entry unchanged.
    pub fn untraced(&self) -> Vec<HeaderEdit<'_>> {
        let mut edits = Vec::new();
        set(&mut edits, ENTRY_HEADER, self.entry().encode().into());
        if let Some(stored) = self.freshens {
            set_bytes(&mut edits, "etag", stored.unwritten().into());
            remove(&mut edits, "last-modified");
        }
        self.keep_cache_control("no-store".into(), &mut edits);
        edits
    }

    /// Returns edits for a store without room: Envoy's cache passes the response on, and EDGE may share it. After a
    /// 304, the store serves its entry.
    pub fn without_room(&self, storage: &Storage) -> Vec<HeaderEdit<'_>> {
        let entry = self.storable_entry(storage);
        let mut edits = Vec::new();
        set(&mut edits, ENTRY_HEADER, entry.encode().into());
        if let Some(stored) = self.freshens {
            // Envoy's cache rewrites an entry that it freshens, and loses it if a write fails.
            set_bytes(&mut edits, "etag", stored.unwritten().into());
            remove(&mut edits, "last-modified");
            set(&mut edits, "age", entry.age.to_string().into());
            self.keep_date(None, &mut edits);
        }
        self.strip_cookies(&mut edits);
        self.keep_cache_control("no-store".into(), &mut edits);
        edits
    }

    /// Returns the mark of a response that is not stored.
    fn entry(&self) -> Entry<'_> {
        let freshened = self.freshens.is_some();
        let stored = self.freshens.and_then(Revalidation::validator);
        Entry {
            fill: self.fill,
            body: stored.map_or(self.fill.body(), |stored| stored.body),
            status: if freshened { 200 } else { self.status },
            lifetime: Lifetime::default(),
            age: 0,
            purge: 0,
            declared: 0,
            stored: false,
            revalidated: freshened,
            disguised: false,
            shared_once: false,
            allows_authenticated: false,
            is_of_index: false,
            key: self.key,
        }
    }

    /// Returns the mark of a response that the policy allows to be stored, with the lifetime of `storage`.
    fn storable_entry(&self, storage: &Storage) -> Entry<'_> {
        Entry {
            lifetime: storage.lifetime,
            age: storage.age,
            purge: self.purge,
            declared: self.declared,
            allows_authenticated: storage.allows_authenticated,
            ..self.entry()
        }
    }

    /// Sets `control` as `Cache-Control` for the store, and keeps the origin's value for EDGE.
    fn keep_cache_control<'b>(&'b self, control: Cow<'b, str>, edits: &mut Vec<HeaderEdit<'b>>) {
        let own = self.cache_control.as_ref().map(JoinedValue::value);
        if let Some(own) = own {
            set_bytes(edits, STORED_CACHE_CONTROL, own.bytes().into());
        }
        let own = own.filter(|_| self.is_intact);
        if !own.is_some_and(|own| tells(own, &control)) {
            set(edits, "cache-control", control);
        }
    }

    /// Whether a field of the response has the `value` already. `current` is the value that was received. Setting the
    /// field again would cost a call of the host.
    fn says(&self, current: Option<FieldValue<'_>>, value: &str) -> bool {
        self.is_intact && current.is_some_and(|current| current == value)
    }

    /// Keeps the origin's `Date` for EDGE. This is not necessary if the store gets the same date and no earlier one
    /// was kept.
    fn keep_date<'b>(&'b self, stored: Option<&str>, edits: &mut Vec<HeaderEdit<'b>>) {
        let own = self.date.filter(|own| date::of(*own).is_some());
        let stored = stored.map(FieldValue::from);
        if let Some(own) = own.filter(|own| self.freshens.is_some() || stored != Some(*own)) {
            set_bytes(edits, STORED_DATE, own.bytes().into());
        }
    }

    /// Removes the `Set-Cookie` of a response that other clients also get.
    fn strip_cookies(&self, edits: &mut Vec<HeaderEdit<'_>>) {
        if self.strips_set_cookie {
            remove(edits, "set-cookie");
        }
    }

    /// Writes the validators, for clients and for a later revalidation.
    fn store_validator(
        &self,
        storage: &Storage,
        entry: &Entry<'_>,
        edits: &mut Vec<HeaderEdit<'_>>,
    ) {
        let last_modified = self.last_modified;
        let validator = Validator {
            lifetime: entry.lifetime,
            body: entry.fill.body(),
            may_ask: storage.may_ask,
            is_said: storage.is_said,
            variant: self.variant,
            last_modified: last_modified.and_then(date::of),
            etag: self.etag,
        };
        set_bytes(edits, "etag", validator.encode().into());
        if last_modified.is_some() {
            remove(edits, "last-modified");
        }
    }

    /// Hides `Vary` from the store, because the key already distinguishes the variants.
    fn hide_vary<'b>(&'b self, edits: &mut Vec<HeaderEdit<'b>>) {
        if let Some(vary) = self.vary {
            set_bytes(edits, STORED_VARY, vary.bytes().into());
        }
        if self.has_vary {
            remove(edits, "vary");
        }
    }
}

/// Whether the origin's `Cache-Control`, with spaces between its directives, means the same to the store as
/// `control`.
fn tells(own: FieldValue<'_>, control: &str) -> bool {
    let Ok(own) = own.text() else {
        return false;
    };
    let meant_for_others = |directive: &&str| matches!(*directive, "public" | "immutable");
    let own = own
        .split(", ")
        .filter(|directive| !meant_for_others(directive));
    own.eq(control.split(", "))
}

/// Adds the stored `ETag`, because the store freshens a response only by a 304 with exactly that `ETag`.
fn freshen_validator<'a>(stored: &'a Revalidation, edits: &mut Vec<HeaderEdit<'a>>) {
    set_bytes(edits, "etag", stored.value().into());
    remove(edits, "last-modified");
}

/// Returns the edits that undo ORIGIN's changes for Envoy's cache, except `Vary`.
pub fn restored<'a>(entry: &Entry<'_>, fields: &StoredFields<'a>) -> Vec<HeaderEdit<'a>> {
    let mut edits = Vec::new();
    remove(&mut edits, ENTRY_HEADER);
    // The cache filter's client adds this field. Removing a missing field would cost a call of the host.
    if fields.has_upstream_service_time() {
        remove(&mut edits, UPSTREAM_SERVICE_TIME);
    }
    if fields.hides() {
        remove(&mut edits, HIDDEN_FIELDS);
    }
    if entry.disguised {
        set(&mut edits, ":status", entry.status.to_string().into());
    }
    if let Some(own) = fields.own_cache_control {
        if fields.cache_control != Some(own) {
            set_bytes(&mut edits, "cache-control", own.bytes().into());
        }
        remove(&mut edits, STORED_CACHE_CONTROL);
    } else if fields.has_cache_control() {
        remove(&mut edits, "cache-control");
    }
    if let Some(own) = fields.own_date {
        set_bytes(&mut edits, "date", own.bytes().into());
        remove(&mut edits, STORED_DATE);
    }
    if let Some(validator) = fields.validator() {
        match validator.etag {
            Some(etag) => set_bytes(&mut edits, "etag", etag.bytes().into()),
            None => remove(&mut edits, "etag"),
        }
        if let Some(date) = validator.last_modified() {
            set(&mut edits, "last-modified", date.into());
        }
    }
    edits
}

// Not inlined, because every worker compiles the module at its start.
#[inline(never)]
fn set<'a>(edits: &mut Vec<HeaderEdit<'a>>, name: &'a str, value: Cow<'a, str>) {
    edits.push(HeaderEdit::set(name, value));
}

#[inline(never)]
fn set_bytes<'a>(edits: &mut Vec<HeaderEdit<'a>>, name: &'a str, value: Cow<'a, [u8]>) {
    edits.push(HeaderEdit::Set(name, value));
}

#[inline(never)]
fn remove<'a>(edits: &mut Vec<HeaderEdit<'a>>, name: &'a str) {
    edits.push(HeaderEdit::Remove(name));
}

#[cfg(test)]
mod tests;
